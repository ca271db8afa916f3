# Has a repository forget a work tree whose directory is gone, and its branch where others have all of it. Runs in a sandbox
# that has the campaign.
#   $1 campaign  $2 tree  $3 branch; empty where it stays
root=$1 tree=$2 branch=$3
git=$root/.git
cd "$root" || exit 3
own() { command git --git-dir="$git" -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
for known in "$git"/worktrees/*; do
    [ "$(cat "$known/gitdir" 2>/dev/null)" != "$tree/.git" ] || rm -rf "$known"
done
rmdir "$git/worktrees" 2>/dev/null
[ -n "$branch" ] || exit 0
tip=$(own rev-parse -q --verify "refs/heads/$branch^{commit}") || exit 0
# A branch that somebody has checked out meanwhile is theirs.
own worktree list --porcelain | grep -qxF "branch refs/heads/$branch" && exit 0
left=$(own rev-list --count "$tip" --not --exclude="$branch" --branches --remotes HEAD) || exit 4
[ "$left" = 0 ] || exit 0
own update-ref -d "refs/heads/$branch" "$tip" || exit 5
echo deleted
