# Says of which others what one tree has does not merge by itself, and in which files. Runs in a sandbox in which neither
# the campaign nor its repository can be changed: what merging writes is written beside both, and forgotten.
#   $1 the repository's directory  $2 snapshot of the one  $3 its head
#   then of each other: its name, its snapshot, its head
repository=$1 one=$2 head=$3
shift 3
export GIT_OBJECT_DIRECTORY=/tmp/objects GIT_DIR="$OSTLER_SNAPSHOTS"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="$OSTLER_SNAPSHOTS/objects:$repository/objects"
mkdir -p "$GIT_OBJECT_DIRECTORY" || exit 3
git() { command git -c core.hooksPath=/dev/null -c core.attributesFile=/dev/null -c core.quotePath=false "$@"; }
while [ $# -ge 3 ]; do
    name=$1 other=$2 theirs=$3
    shift 3
    # Where both began. Of what has nothing in common nothing is said.
    base=$(git merge-base "$head" "$theirs") || continue
    ours=$(git commit-tree "$one^{tree}" -p "$base" -m one) || continue
    yours=$(git commit-tree "$other^{tree}" -p "$base" -m other) || continue
    git merge-tree --write-tree --name-only --no-messages "$ours" "$yours" >/tmp/said
    case $? in
        0) echo "with $name" ;;
        1) echo "with $name" && sed -e 1d -e 's/^/in /' /tmp/said ;;
    esac
done
