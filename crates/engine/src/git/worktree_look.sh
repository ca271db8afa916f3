# Says of a repository what somebody needs to know who wants a work tree of it. Runs in a sandbox in which the campaign
# cannot be changed.
#   $1 campaign  $2 branch that is wanted, or nothing
root=$1 wanted=$2
cd "$root" || exit 3
command -v git >/dev/null || exit 0
echo git
own() { command git --git-dir="$root/.git" -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@" 2>/dev/null; }
head=$(own rev-parse -q --verify 'HEAD^{commit}') || exit 0
echo "head $head"
branch=$(own symbolic-ref -q --short HEAD) && echo "branch $branch"
own for-each-ref --count=10000 --format='taken %(refname:lstrip=2)' refs/heads/agent
[ -n "$wanted" ] || exit 0
tip=$(own rev-parse -q --verify "refs/heads/$wanted^{commit}") && echo "tip $tip"
own worktree list --porcelain | while read -r word rest; do
    case $word in
    worktree) place=$rest ;;
    branch) [ "$rest" = "refs/heads/$wanted" ] && echo "elsewhere $place" ;;
    esac
done
exit 0
