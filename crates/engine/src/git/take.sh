# Writes a tree down in a repository of Ostler's own, and says what the tree's own repository has. Runs in a sandbox in
# which the tree cannot be changed. Nothing of the tree is believed or executed: no hook, filter, monitor or helper is
# configured in our repository, and of the tree's own only what runs no program is asked.
#   $1 tree  $2 name of the tree  $3 title  $4 first snapshot of the session  $5 last known head
#   $6 the repository's directory  $7 the snapshot that the tree was put back to, if it was
tree=$1 name=$2 title=$3 first=$4 last=$5 repository=$6 back=$7
umask 077
cd "$tree" || exit 3

own() { command git --git-dir="$tree/.git" -c core.fsmonitor=false "$@" 2>/dev/null; }
if head=$(own rev-parse -q --verify 'HEAD^{commit}'); then
    echo "head $head"
    [ -z "$last" ] || [ "$last" = "$head" ] || own rev-list --max-count=100 --format='made %H %s' "$last..$head"
fi
branch=$(own symbolic-ref -q --short HEAD) && echo "branch $branch"

export GIT_DIR="$OSTLER_SNAPSHOTS" GIT_INDEX_FILE="$OSTLER_SNAPSHOTS/index.$name"
ref=refs/trees/$name
[ -d "$GIT_DIR/objects" ] || git init -q --bare --template= "$GIT_DIR" || exit 4
# Whoever was ended half way has left these; we are alone here.
rm -f "$GIT_INDEX_FILE.lock" "$GIT_DIR/$ref.lock"
mkdir -p "$GIT_DIR/info"
# Bytes as they are, whatever the tree says about them.
echo '* -text -filter -ident -working-tree-encoding' >"$GIT_DIR/info/attributes"
ours() {
    command git --work-tree="$tree" -c core.bare=false -c core.hooksPath=/dev/null -c core.fsmonitor=false \
        -c core.attributesFile=/dev/null -c core.excludesFile="$repository/info/exclude" -c core.autocrlf=false \
        -c core.untrackedCache=false -c gc.auto=0 -c advice.addEmbeddedRepo=false "$@"
}
# What cannot be read is hidden, or nobody's business: the rest counts.
ours add -A --ignore-errors . 2>/tmp/why
[ $? -le 1 ] || { cat /tmp/why >&2; exit 5; }
written=$(ours write-tree) || exit 6
if before=$(ours rev-parse -q --verify "$ref^{commit}"); then
    [ "$(ours rev-parse "$before^{tree}")" = "$written" ] && taken=$before
fi
if [ -z "${taken-}" ]; then
    taken=$(ours commit-tree "$written" ${before:+-p "$before"} ${back:+-p "$back"} -m "$title") || exit 7
    ours update-ref "$ref" "$taken" || exit 8
fi
echo "snapshot $taken"
[ -z "$first" ] || echo "changed $(ours diff-tree -r --no-renames --shortstat "$first" "$taken")"
# Now and then what lies loose is packed: no snapshot is lost by it, since all are in their tree's line.
ours -c gc.auto=2000 -c gc.autoDetach=false gc --auto --quiet 2>/dev/null || :
