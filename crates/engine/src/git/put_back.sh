# Puts the files of a snapshot back. That nothing is in the way that no snapshot has was looked at before.
#   $1 tree  $2 the snapshot of what is there  $3 the snapshot wanted
tree=$1 there=$2 wanted=$3
umask 022
cd "$tree" || exit 3
export GIT_DIR="$OSTLER_SNAPSHOTS" GIT_INDEX_FILE=/tmp/index LC_ALL=C
ours() {
    command git --work-tree="$tree" -c core.bare=false -c core.hooksPath=/dev/null -c core.fsmonitor=false \
        -c core.attributesFile=/dev/null -c core.autocrlf=false -c core.untrackedCache=false "$@"
}
ours read-tree "$there" || exit 4
ours update-index -q --refresh >/dev/null
ours read-tree -m -u "$there" "$wanted" || exit 5
