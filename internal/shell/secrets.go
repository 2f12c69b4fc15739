package shell

import (
	"slices"
	"strings"

	"bellwether/internal/terminal"
)

// hasSecret reports whether a command line contains credentials: addauth, also with a typing error,
// the scheme digest with a text after it, and flags for credentials.
func hasSecret(line string) bool {
	words, err := terminal.Words(line)
	if err != nil {
		words = strings.Fields(line)
	}
	for i, w := range words {
		name := strings.ToLower(w)
		switch {
		case strings.HasPrefix(name, "--auth"), strings.HasPrefix(name, "-") && strings.Contains(name, "password"):
			return true
		case slices.Contains([]string{"digest", "auth"}, name) && i+1 < len(words):
			return true
		case i == 0 && likeAddauth(name):
			return true
		}
	}
	return false
}

// likeAddauth reports whether a word may be a misspelt addauth: at most two letters of addauth
// are missing and at most two others are there, in whatever order. The command addWatch does not
// count.
func likeAddauth(word string) bool {
	if word == "addwatch" {
		return false
	}
	missing := 0
	rest := word
	for _, letter := range "addauth" {
		if i := strings.IndexRune(rest, letter); i >= 0 {
			rest = rest[:i] + rest[i+1:]
		} else {
			missing++
		}
	}
	return missing <= 2 && len(rest) <= 2
}

// hidden stands for the credentials of a line.
const hidden = "****"

// withoutSecrets returns a line as history may show it.
func withoutSecrets(line string) string {
	if !hasSecret(line) {
		return line
	}
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return name + " " + hidden
}
