package shell

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"bellwether/wire"
)

// pathProblem says what is wrong with a path, in the words of ZooKeeper's CLI; empty for a path that
// servers accept.
func pathProblem(path string) string {
	switch {
	case wire.ValidPath(path):
		return ""
	case path == "":
		return "Path length must be > 0"
	case path[0] != '/':
		return "Path must start with / character"
	case strings.HasSuffix(path, "/"):
		return "Path must not end with / character"
	}
	at := 1 // in UTF-16 units, as Java counts
	for _, name := range strings.Split(path[1:], "/") {
		end := at + len(utf16.Encode([]rune(name)))
		switch {
		case name == "":
			return invalidPath(path, "empty node name specified", at)
		case name == "." || name == "..":
			return invalidPath(path, "relative paths not allowed", end-1)
		case !wire.ValidPath("/" + name):
			return invalidPath(path, "invalid character", at+invalidAt(name))
		}
		at = end + 1
	}
	return "Path is not valid"
}

func invalidPath(path, reason string, at int) string {
	return fmt.Sprintf("Invalid path string %q caused by %s @%d", path, reason, at)
}

// invalidAt returns the position in a name of the first character that no path may contain.
func invalidAt(name string) int {
	at := 0
	for _, r := range name {
		if !wire.ValidPath("/x" + string(r)) {
			break
		}
		at += utf16.RuneLen(r)
	}
	return at
}
