package terminal

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                        nil,
		" \t ":                    nil,
		"ls /":                    {"ls", "/"},
		"  ls   -s\t/a  ":         {"ls", "-s", "/a"},
		`create /a "two words"`:   {"create", "/a", "two words"},
		`create /a 'two "words"'`: {"create", "/a", `two "words"`},
		`create /a ""`:            {"create", "/a", ""},
		`set /a {"a":1}`:          {"set", "/a", `{"a":1}`}, // a mark within a word is text
		`set /a it's`:             {"set", "/a", "it's"},
		`set /a "a\"b\\c\n"`:      {"set", "/a", `a"b\c\n`},
		`set /a 'a\'`:             {"set", "/a", `a\`},
		`set /a a\ b`:             {"set", "/a", `a\`, "b"},
		"set /a 'two\nlines'":     {"set", "/a", "two\nlines"},
		"set /a \"x\"\r":          {"set", "/a", "x"}, // a file from Windows
		"set /ä 'ü'":              {"set", "/ä", "ü"},
	} {
		if got, err := Words(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		`set /a "open`:   `"open has no closing "`,
		`set /a 'open"`:  `'open" has no closing '`,
		`set /a "a"b`:    `text follows the closing " of "a"`,
		`set /a "open\"`: `no closing "`,
	} {
		_, err := Words(line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
		if unclosed := !strings.Contains(want, "follows"); errors.Is(err, ErrUnclosed) != unclosed {
			t.Errorf("%q: unclosed %v", line, !unclosed)
		}
	}
}

// TestQuoteIsReadBack shows that Words reads every word that Quote has quoted.
func TestQuoteIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.String()).Draw(t, "words")
		var line []string
		for _, w := range words {
			line = append(line, Quote(w))
		}
		got, err := Words(strings.Join(line, " "))
		if err != nil || !slices.Equal(got, words) && len(got)+len(words) > 0 {
			t.Fatalf("%q: %q, %v", words, got, err)
		}
	})
}
