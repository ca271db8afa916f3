# Says how a work tree stands. Runs in a sandbox in which the campaign cannot be changed, and in which nothing of the tree is
# hidden: what differs is counted, and not told.
#   $1 campaign  $2 tree  $3 branch  $4 the commit that it was made from  $5 most ignored names
root=$1 tree=$2 branch=$3 base=$4 most=$5 on=
cd "$root" || exit 3
repository() { command git --git-dir="$root/.git" -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
tip=$(repository rev-parse -q --verify "refs/heads/$branch^{commit}")
entry=$(sed -n 's/^gitdir: //p' "$tree/.git" 2>/dev/null)
if [ -z "$entry" ]; then
    # Without a tree only its branch counts; with one that is not empty nobody knows.
    [ -z "$(ls -A "$tree" 2>/dev/null)" ] || exit 4
    heads=$tip
else
    own() {
        command git --git-dir="$entry" --work-tree="$tree" -c core.fsmonitor=false -c core.hooksPath=/dev/null \
            -c core.untrackedCache=false "$@"
    }
    cd "$tree" || exit 3
    head=$(own rev-parse -q --verify 'HEAD^{commit}') || exit 5
    echo "head $head"
    # What it was put on in place of its own branch has merged nothing.
    on=$(own symbolic-ref -q --short HEAD) && echo "branch $on"
    heads="$head $tip"
    made >/tmp/made
    for commit in $(left); do
        grep -qxF "$commit" /tmp/made && own cat-file -e "$commit^{commit}" 2>/dev/null || continue
        [ "$(own rev-list --count "$commit" --not --branches --tags "$head")" = 0 ] && continue
        brings_nothing "$head" "$commit" && continue
        heads="$heads $commit"
        echo "left $commit"
    done
    # Nothing is run for a repository within: whoever wrote its configuration may be an agent.
    own status --porcelain -z --untracked-files=all --ignored=traditional --ignore-submodules=dirty --no-renames \
        >/tmp/status || exit 6
    echo "uncommitted $(tr '\0' '\n' </tmp/status | grep -cv '^!! ')"
    tr '\0' '\n' </tmp/status | sed -n 's/^!! /ignored /p' | head -n "$most"
    # Files that git was told not to look at.
    own ls-files -v -z >/tmp/files || exit 7
    echo "uncommitted $(tr '\0' '\n' </tmp/files | grep -c '^[a-z] ')"
    tr '\0' '\n' </tmp/files | sed -n 's/^S //p' | while IFS= read -r file; do
        [ ! -e "$file" ] || echo "uncommitted 1"
    done
    own ls-files -s -z | tr '\0' '\n' | sed -n 's/^160000 [^	]*	//p' | while IFS= read -r inner; do
        [ ! -e "$inner/.git" ] || echo "busy it has a repository of its own in $inner"
    done
    for sign in rebase-merge:rebase rebase-apply:rebase MERGE_HEAD:merge CHERRY_PICK_HEAD:cherry-pick \
        REVERT_HEAD:revert BISECT_LOG:bisect; do
        [ ! -e "$entry/${sign%%:*}" ] || echo "busy it is in the middle of a ${sign#*:}"
    done
    echo "commits $(own rev-list --count "$base..$head" 2>/dev/null || echo 0)"
fi
if [ -n "$heads" ]; then
    # Its branch goes with it, so whatever is reached from elsewhere is kept, and nothing else.
    unmerged=$(repository rev-list --count $heads --not --exclude="$branch" --exclude="${on:-$branch}" --branches --remotes HEAD) || exit 8
    echo "unmerged $unmerged"
else
    echo "unmerged 0"
fi
echo whole
