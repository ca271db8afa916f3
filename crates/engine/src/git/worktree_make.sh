# Makes a work tree, or makes sure that it is one: of a directory that is new, that was emptied, or whose repository has
# forgotten it. What is in it stays. Runs in a sandbox that has the campaign and the tree.
#   $1 campaign  $2 tree  $3 branch  $4 the commit that a new branch begins with  $5 why nobody else may remove it
#   $6 the commit that it begins with if that one is gone
root=$1 tree=$2 branch=$3 start=$4 reason=$5 base=$6
umask 022
git=$root/.git
cd "$root" || exit 3
own() {
    command git --git-dir="$git" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 \
        -c advice.detachedHead=false "$@"
}
says() {
    [ -f "$1" ] && [ ! -L "$1" ] && [ "$(cat "$1")" = "$2" ] || { rm -rf "$1" && echo "$2" >"$1"; }
}
entry=
for known in "$git"/worktrees/*; do
    [ "$(cat "$known/gitdir" 2>/dev/null)" = "$tree/.git" ] && entry=$known
done
own rev-parse -q --verify "refs/heads/$branch^{commit}" >/dev/null || missing=1
own cat-file -e "$start^{commit}" 2>/dev/null || start=$base

if [ -z "$(ls -A "$tree")" ]; then
    # It is locked, and would be taken for one that is only away.
    [ -z "$entry" ] || rm -rf "$entry"
    if [ -n "${missing-}" ]; then
        own worktree add -q --lock --reason "$reason" --no-track -b "$branch" "$tree" "$start" || exit 4
    else
        own worktree add -q --lock --reason "$reason" "$tree" "$branch" || exit 4
    fi
    entry=$(sed -n 's/^gitdir: //p' "$tree/.git")
    made=1
else
    if [ -z "$entry" ]; then
        name=${tree##*/} n=
        while [ -e "$git/worktrees/$name$n" ]; do n=$((n + 1)); done
        entry=$git/worktrees/$name$n
        mkdir -p "$entry" || exit 5
        echo "$tree/.git" >"$entry/gitdir"
        echo "$reason" >"$entry/locked"
        [ -z "${missing-}" ] || own update-ref "refs/heads/$branch" "$start" '' || exit 6
        echo "ref: refs/heads/$branch" >"$entry/HEAD"
        forgotten=1
    fi
    # The campaign may have been moved since, and agents that work in its own checkout can write here. What is right is
    # left alone: whoever works in the tree at this moment is protected by a mount on it.
    says "$entry/commondir" ../.. || exit 7
    says "$tree/.git" "gitdir: $entry" || exit 7
    inside() {
        command git --git-dir="$entry" --work-tree="$tree" -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"
    }
    if [ ! -e "$entry/index" ]; then
        rm -f "$entry/index.lock"
        # What was ready to be committed is forgotten; what is in the files is not.
        inside read-tree HEAD || exit 8
        # Whoever made it was ended half way: what is missing was never there. What is there stays as it is.
        [ -n "${forgotten-}" ] || (cd "$tree" && inside checkout-index -a -q)
    fi
fi
# What is there cannot be made by an agent, and this one says nothing.
[ -f "$entry/config.worktree" ] && [ ! -L "$entry/config.worktree" ] || { rm -rf "$entry/config.worktree" && : >"$entry/config.worktree"; } || exit 9
mkdir -p "$git/logs/refs" || exit 10
head=$(command git --git-dir="$entry" rev-parse -q --verify 'HEAD^{commit}') || exit 11
echo "head $head"
echo "entry ${entry##*/}"
[ -z "${made-}${forgotten-}" ] || echo made
