# Puts the files of a snapshot back. Everything is looked at before anything is changed: what no snapshot has is in the way,
# and then nothing is done.
#   $1 tree  $2 the snapshot of what is there  $3 the snapshot wanted  $4 "look": nothing is to be changed
# What is in the way is said, each name with a zero byte behind it; the exit code is 9 then.
tree=$1 there=$2 wanted=$3 only=$4
umask 022
cd "$tree" || exit 3
export GIT_DIR="$OSTLER_SNAPSHOTS" GIT_INDEX_FILE=/tmp/index LC_ALL=C
ours() {
    command git --work-tree="$tree" -c core.bare=false -c core.hooksPath=/dev/null -c core.fsmonitor=false \
        -c core.attributesFile=/dev/null -c core.autocrlf=false -c core.untrackedCache=false "$@"
}
ours read-tree "$there" || exit 4
# Git would write over files that it ignores, and over repositories within the tree: no snapshot has what is in those.
ours diff-tree -r -z --no-renames --diff-filter=AT --name-only "$there" "$wanted" | sort -z >/tmp/written
if [ -s /tmp/written ]; then
    ours ls-files --others -z | sort -z >/tmp/others
    GIT_INDEX_FILE=/tmp/wanted ours read-tree "$wanted" || exit 4
    GIT_INDEX_FILE=/tmp/wanted ours ls-files --killed -z | sort -z >/tmp/killed
    comm -z -12 /tmp/others /tmp/written >/tmp/way
    comm -z -12 /tmp/others /tmp/killed >>/tmp/way
    ours ls-files --stage -z | sed -zn 's/^160000 [^\t]*\t//p' | tr '\0' '\n' >/tmp/repositories
    while read -r inner; do
        [ -n "$(ls -A "$inner" 2>/dev/null)" ] || continue
        within=$(GIT_LITERAL_PATHSPECS=1 ours diff-tree -r --no-renames --diff-filter=AT --name-only \
            "$there" "$wanted" -- "$inner")
        [ -z "$within" ] || printf '%s/\0' "$inner" >>/tmp/way
    done </tmp/repositories
    if [ -s /tmp/way ]; then
        sort -zu /tmp/way | head -z -n 100
        exit 9
    fi
fi
[ "$only" = look ] && exit 0
ours update-index -q --refresh >/dev/null
ours read-tree -m -u "$there" "$wanted" || exit 5
