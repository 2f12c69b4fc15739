package terminal

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// ErrUnclosed is the error of a line in which a quotation is not closed: the next line belongs to it.
var ErrUnclosed = errors.New("unclosed quotation")

// Words splits a command line into words as ZooKeeper's command line does: a quotation mark
// matters only at the beginning of a word, so {"a":1} needs no quotes, and single quotes keep
// everything. Unlike in ZooKeeper, \" and \\ in double quotes stand for " and \, a quotation may
// contain line ends, and text that directly follows a quotation is an error.
func Words(line string) ([]string, error) {
	var words []string
	for rest := strings.TrimLeftFunc(line, unicode.IsSpace); rest != ""; {
		var word string
		var err error
		switch quote := rest[0]; quote {
		case '"', '\'':
			if word, rest, err = quotation(rest[1:], quote); err != nil {
				return nil, err
			}
		default:
			end := strings.IndexFunc(rest, unicode.IsSpace)
			if end < 0 {
				end = len(rest)
			}
			word, rest = rest[:end], rest[end:]
		}
		words = append(words, word)
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	}
	return words, nil
}

// quotation returns the text up to the closing mark, and what follows the mark.
func quotation(text string, mark byte) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == mark:
			rest = text[i+1:]
			if rest != "" && !strings.ContainsRune(" \t\r\n", rune(rest[0])) {
				return "", "", fmt.Errorf("text follows the closing %c of %c%s%c: put a blank between them", mark, mark, clip(b.String()), mark)
			}
			return b.String(), rest, nil
		case c == '\\' && mark == '"' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("%w: %c%s has no closing %c", ErrUnclosed, mark, clip(text), mark)
}

// clipMax is how much of a word an error message shows, in bytes.
const clipMax = 40

func clip(s string) string {
	if len(s) <= clipMax {
		return s
	}
	return strings.ToValidUTF8(s[:clipMax], "") + "…"
}

// Quote returns a word in a form that Words reads as the same word.
func Quote(word string) string {
	switch {
	case word == "", word[0] == '"', word[0] == '\'', strings.ContainsFunc(word, unicode.IsSpace):
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
	}
	return word
}
