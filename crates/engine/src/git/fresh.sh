# Says when the last commit of a tree was made, and which of its files differ from it. Runs in a sandbox in which the tree
# cannot be changed.
#   $1 tree; branches follow, of which one is to have what is checked out, and all that was committed here
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
    # What was committed here and only another branch or a tag has, or none and it was left there. What was amended,
    # rebased, reset, or on a branch that was deleted, was given up. What was only checked out is somebody else's.
    has="$has $head"
    made >/tmp/made
    { cat /tmp/made && for tip in $has; do echo "^$tip"; done; } |
        own rev-list --ignore-missing --stdin 2>/dev/null | sort | comm -12 /tmp/made - | head -n 100 >/tmp/beside
    while read -r commit; do
        own for-each-ref --contains="$commit" --format='%(refname)' refs/heads refs/tags
    done </tmp/beside | sort -u >/tmp/names
    {
        own for-each-ref --sort=-creatordate --format='%(refname) %(refname:short)' refs/heads refs/tags |
            while read -r name short; do
                grep -qxF "$name" /tmp/names && echo "$name $short"
            done
        left
    } |
        while read -r name short; do
            tip=$(own rev-parse -q --verify "$name^{commit}") || continue
            count=$(own rev-list "$tip" --not $has | grep -cxFf /tmp/made)
            [ "$count" = 0 ] && continue
            has="$has $tip"
            brings_nothing "$head" "$tip" && continue
            echo "beside $count $tip $short"
        done
fi
own status --porcelain -z --untracked-files=all --ignore-submodules=dirty --no-renames >/tmp/status || exit 4
tr '\0' '\n' </tmp/status | sed -n 's/^..  *//p' | sed 's/^/file /'
