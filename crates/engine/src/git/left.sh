# What was committed in a work tree, by what its HEAD has been. Whoever uses it says with `own` which tree that is.

# All commits that were made there.
made() {
    own log -g --format='%H %gs' HEAD 2>/dev/null |
        grep -E '^[0-9a-f]+ (commit|merge|cherry-pick|revert|rebase|am|pull)' |
        grep -Ev ': Fast-forward|[(](start|finish)[)]' | cut -d' ' -f1 | sort -u
}

# Where it was on no branch when something else was checked out, the newest first. What was also amended, reset or rebased
# was given up.
left() {
    own log -g --format='%H %gs' HEAD 2>/dev/null | {
        left= gone=' ' next= action=
        while read -r commit was; do
            case "$action" in
            "checkout: moving from $commit to "*) left="$left $commit" ;;
            'commit (amend)'* | 'reset: '* | *'(start)'*) [ "$next" = "$commit" ] || gone="$gone$commit " ;;
            esac
            next=$commit action=$was
        done
        for commit in $left; do
            case "$gone" in *" $commit "*) ;; *) echo "$commit" ;; esac
        done
    }
}

# Whether a commit has all that another one would bring: picked, squashed or written again, it is there, and merging it would
# change nothing.
brings_nothing() {
    objects=$(own rev-parse --git-path objects)
    mkdir -p /tmp/objects
    merged=$(GIT_OBJECT_DIRECTORY=/tmp/objects GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects" \
        own merge-tree --write-tree "$1" "$2" 2>/dev/null) && [ "$merged" = "$(own rev-parse "$1^{tree}")" ]
}

