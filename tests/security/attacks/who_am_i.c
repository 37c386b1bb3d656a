/* Planted as a set-user-id program: prints whom it runs as. */
#include <stdio.h>
#include <unistd.h>
int main(void) { return printf("euid %d uid %d egid %d\n", geteuid(), getuid(), getegid()), 0; }
