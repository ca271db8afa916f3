# Says when the last commit of a tree was made, and which of its files differ from it. Runs in a sandbox in which the tree
# cannot be changed.
#   $1 tree; branches follow, of which one is to have what is checked out
tree=$1
shift
cd "$tree" || exit 3
own() {
    command git --git-dir="$tree/.git" --work-tree="$tree" -c core.fsmonitor=false -c core.hooksPath=/dev/null \
        -c core.untrackedCache=false -c core.quotePath=false "$@"
}
own log -1 --format='commit %ct' 2>/dev/null
if [ $# -gt 0 ] && head=$(own rev-parse -q --verify 'HEAD^{commit}'); then
    has=
    for branch in "$@"; do
        tip=$(own rev-parse -q --verify "refs/heads/$branch^{commit}") && has="$has $tip"
    done
    count=$(own rev-list --count "$head" --not $has) || exit 5
    [ "$count" = 0 ] || echo "elsewhere $count $head $(own symbolic-ref -q --short HEAD)"
fi
own status --porcelain -z --untracked-files=all --ignore-submodules=dirty --no-renames >/tmp/status || exit 4
tr '\0' '\n' </tmp/status | sed -n 's/^..  *//p' | sed 's/^/file /'
