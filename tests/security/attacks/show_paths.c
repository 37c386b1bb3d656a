/* Shows files and lists directories; linked statically it runs in any root. PATH... */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static char text[65536];
  for (int i = 1; i < argc; i++) {
    long length = read(open(argv[i], O_RDONLY), text, sizeof text);
    DIR *directory = opendir(argv[i]);
    printf("%s: %.*s", argv[i], length > 0 ? (int)length : 0, text);
    for (struct dirent *entry; directory && (entry = readdir(directory));) printf(" %s", entry->d_name);
    puts("");
  }
  return 0;
}
