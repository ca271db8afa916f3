# Says when the last commit of a tree was made, and which of its files differ from it. Runs in a sandbox in which the tree
# cannot be changed.
#   $1 tree
tree=$1
cd "$tree" || exit 3
own() {
    command git --git-dir="$tree/.git" --work-tree="$tree" -c core.fsmonitor=false -c core.hooksPath=/dev/null \
        -c core.untrackedCache=false -c core.quotePath=false "$@"
}
own log -1 --format='commit %ct' 2>/dev/null
own status --porcelain -z --untracked-files=all --ignore-submodules=dirty --no-renames >/tmp/status || exit 4
tr '\0' '\n' </tmp/status | sed -n 's/^..  *//p' | sed 's/^/file /'
