# $1 is the mission, $2 its name, $3 the branch, $4 the gate; the branches that are merged follow, each with its work tree
# as a word of a shell. All that it prints is where the
# branch is and what the merge is. Nothing of it touches the branch.
set -eu
mission=$1 name=$2 into=$3 gate=$4
shift 4
# Whoever told git no name merges under Ostler's, as its snapshots are made.
if ! git var GIT_COMMITTER_IDENT >/dev/null 2>&1; then
    export GIT_AUTHOR_NAME=Ostler GIT_AUTHOR_EMAIL=ostler@localhost
    export GIT_COMMITTER_NAME=Ostler GIT_COMMITTER_EMAIL=ostler@localhost
fi
own() { git -c core.hooksPath=/dev/null -c commit.gpgsign=false -c merge.verifySignatures=false "$@"; }
old=$(own rev-parse --verify --quiet "refs/heads/$into^{commit}") || { echo "there is no branch $into" >&2; exit 1; }
# A work tree whose HEAD and index lie beside it, and not among the repository's: nobody else reaches them, git on the host
# lists nothing of it, and all of it goes with this sandbox, however that ends.
above=$(mktemp -d)
place=$above/ostler-merge-$mission private=$above/git
mkdir -p "$place" "$private/info"
common=$(cd "$(own rev-parse --git-common-dir)" && pwd)
echo "$common" >"$private/commondir"
echo "$place/.git" >"$private/gitdir"
echo "$old" >"$private/HEAD"
echo "gitdir: $private" >"$place/.git"
# As `git worktree add` does it: a part of a large repository stays a part of it.
for kept in config.worktree info/sparse-checkout; do
    if [ -f "$common/$kept" ]; then cp "$common/$kept" "$private/$kept"; fi
done
if [ -f "$private/config.worktree" ]; then
    for where in core.worktree core.bare; do
        own config --file "$private/config.worktree" --unset-all "$where" || true
    done
fi
if [ -d "$common/reftable" ]; then mkdir "$private/reftable"; fi
cd "$place"
own update-ref --no-deref HEAD "$old"
own reset --quiet --hard --no-recurse-submodules
colliding() { own diff --name-only --diff-filter=U 2>/dev/null || true; }
# Says where the branch can be brought together with what it collides with, so that it merges the next time.
say_where() {
    own reset --quiet --hard
    with=$into
    for other in $merged; do
        own checkout --quiet --detach "refs/heads/$branch"
        if ! own merge --quiet --no-commit --no-ff "refs/heads/$other" >/dev/null 2>&1 && [ -n "$(colliding)" ]; then
            with=$other
            break
        fi
        own reset --quiet --hard
    done
    echo "resolve it in its work tree: git -C $tree merge $with" >&2
    echo "commit there what you resolved, then: ostler mission retry $name" >&2
}
merged=$into
while [ $# -gt 0 ]; do
    branch=$1 tree=$2
    shift 2
    if ! said=$(own merge --quiet --no-ff -m "Merge $branch" "refs/heads/$branch" 2>&1); then
        files=$(colliding)
        if [ -z "$files" ]; then
            echo "$branch was not merged, and no file collides; \`git merge $branch\` says:" >&2
            echo "$said" >&2
            exit 1
        fi
        printf '%s\n' "$said" "$branch does not merge; these files collide:" "$files" >&2
        say_where
        exit 1
    fi
    merged="$merged $branch"
done
new=$(own rev-parse HEAD)
if [ -n "$gate" ] && ! sh -c "$gate" >&2; then
    echo "the gate failed: $gate" >&2
    exit 1
fi
echo "$old $new"
