set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q r && cd r
echo one > file && git add file && git commit -qm first
git checkout -qb other && echo two >> file && git commit -qam second
git checkout -q main && git merge -q other && git log --format='%h %s' && git status --short
git tag v1 && git clone -q . ../copy && git -C ../copy describe --tags && git gc -q && git fsck 2>/dev/null && git grep -n two
git diff HEAD~1 --stat | tail -1
