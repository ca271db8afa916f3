# $1 is the mission, $2 the branch, $3 the gate; the branches that are merged follow. All that it prints is where the
# branch is and what the merge is. Nothing of it touches the branch.
set -eu
mission=$1 into=$2 gate=$3
shift 3
root=$(pwd)
# Whoever told git no name merges under Ostler's, as its snapshots are made.
if ! git var GIT_COMMITTER_IDENT >/dev/null 2>&1; then
    export GIT_AUTHOR_NAME=Ostler GIT_AUTHOR_EMAIL=ostler@localhost
    export GIT_COMMITTER_NAME=Ostler GIT_COMMITTER_EMAIL=ostler@localhost
fi
own() { git -c core.hooksPath=/dev/null -c commit.gpgsign=false -c merge.verifySignatures=false "$@"; }
old=$(own rev-parse --verify --quiet "refs/heads/$into^{commit}") || { echo "there is no branch $into" >&2; exit 1; }
place=$(mktemp -d)/ostler-merge-$mission
own worktree add --quiet --detach "$place" "$old" >&2
trap 'cd "$root"; own worktree remove --force "$place" >&2 || true' EXIT
cd "$place"
for branch in "$@"; do
    if ! own merge --quiet --no-ff -m "Merge $branch" "refs/heads/$branch" >&2; then
        echo "$branch does not merge; these files collide:" >&2
        own diff --name-only --diff-filter=U >&2
        exit 1
    fi
done
new=$(own rev-parse HEAD)
if [ -n "$gate" ] && ! sh -c "$gate" >&2; then
    echo "the gate failed: $gate" >&2
    exit 1
fi
echo "$old $new"
