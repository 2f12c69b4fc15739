package jaas

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is a kind of token. Single characters are their own kind.
type kind rune

const (
	end kind = -1 - iota
	word
	quoted
)

// String returns the name of the kind for an error. The text of a token is left out, because it may be a
// password.
func (k kind) String() string {
	switch k {
	case end:
		return "the end of the file"
	case word:
		return "a word"
	case quoted:
		return "a quoted text"
	}
	return fmt.Sprintf("%q", rune(k))
}

type token struct {
	kind  kind
	text  string // the text of a word, or the text between quotes
	place place
}

// scanner splits a file into tokens, as the JDK's StreamTokenizer does with the settings that
// the JDK gives it.
type scanner struct {
	rest string
	at   place
}

func newScanner(file, text string) *scanner {
	return &scanner{strings.TrimPrefix(text, "\ufeff"), place{file, 1, 1}}
}

// eof is what peek returns at the end.
const eof rune = -1

func (s *scanner) peek() rune {
	if s.rest == "" {
		return eof
	}
	r, _ := utf8.DecodeRuneInString(s.rest)
	return r
}

// take moves past one character.
func (s *scanner) take() rune {
	r, n := utf8.DecodeRuneInString(s.rest)
	s.rest = s.rest[n:]
	s.at.column++
	if r == '\n' {
		s.at.line++
		s.at.column = 1
	}
	return r
}

func (s *scanner) scan() (token, error) {
	if err := s.skip(); err != nil {
		return token{}, err
	}
	t := token{place: s.at}
	switch r := s.peek(); {
	case r == eof:
		t.kind = end
	case r == utf8.RuneError && !strings.HasPrefix(s.rest, "\ufffd"):
		return t, s.at.errorf("a byte that is not UTF-8")
	case r == '"':
		text, err := s.quoted()
		t.kind, t.text = quoted, text
		return t, err
	case startsWord(r):
		before := s.rest
		for inWord(s.peek()) {
			s.take()
		}
		t.kind, t.text = word, before[:len(before)-len(s.rest)]
	case strings.ContainsRune("{}=;", r):
		t.kind = kind(s.take())
	case strings.ContainsRune("0123456789.-", r):
		return t, s.at.errorf("a text that begins with %q must be in double quotes", r)
	case r == '/':
		return t, s.at.errorf("a single slash; a path must be in double quotes, and a comment begins with // or /*")
	case r == '#':
		return t, s.at.errorf("# does not begin a comment; use //")
	case r == '\'':
		return t, s.at.errorf("a single quote; use double quotes")
	default:
		return t, s.at.errorf("%q must be in double quotes", r)
	}
	return t, nil
}

func startsWord(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '$', r == '_', r == '*':
		return true
	}
	return r >= 0xa0 && r != utf8.RuneError
}

func inWord(r rune) bool {
	return startsWord(r) || r >= '0' && r <= '9' || r == '.' || r == '-'
}

// skip moves past white space and comments.
func (s *scanner) skip() error {
	for {
		switch {
		case s.rest != "" && s.rest[0] <= ' ':
			s.take()
		case strings.HasPrefix(s.rest, "//"):
			for r := s.peek(); r != eof && r != '\n' && r != '\r'; r = s.peek() {
				s.take()
			}
		case strings.HasPrefix(s.rest, "/*"):
			begin := s.at
			s.take()
			for s.take(); !strings.HasPrefix(s.rest, "*/"); s.take() {
				if s.rest == "" {
					return begin.errorf("a comment without */")
				}
			}
			s.take()
			s.take()
		default:
			return nil
		}
	}
}

// escapes are the characters that a letter after a backslash stands for.
var escapes = map[rune]rune{'a': 7, 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// quoted takes a text in double quotes.
func (s *scanner) quoted() (string, error) {
	begin := s.at
	s.take()
	var b strings.Builder
	for {
		r := s.peek()
		switch {
		case r == eof || r == '\n' || r == '\r':
			return "", begin.errorf("a quoted text that is not closed on its line")
		case r == utf8.RuneError && !strings.HasPrefix(s.rest, "\ufffd"):
			return "", s.at.errorf("a byte that is not UTF-8")
		case r == '"':
			s.take()
			return b.String(), nil
		case r == '\\':
			s.take()
			if s.rest == "" {
				return "", begin.errorf("a quoted text that is not closed on its line")
			}
			b.WriteRune(s.escaped())
		default:
			b.WriteRune(s.take())
		}
	}
}

// escaped reads what follows a backslash: an octal number of up to three digits, a letter of escapes, or
// a character that is to be taken literally.
func (s *scanner) escaped() rune {
	first := s.take()
	if first < '0' || first > '7' {
		if r, ok := escapes[first]; ok {
			return r
		}
		return first
	}
	n, digits := first-'0', 2
	if first > '3' {
		digits = 1 // so that the number stays below 256
	}
	for ; digits > 0 && s.peek() >= '0' && s.peek() <= '7'; digits-- {
		n = n*8 + s.take() - '0'
	}
	return n
}

// expand replaces ${name} by the value of a system property and ${/} by a slash. As in the
// JDK, ${{name}} stays as it is, and so does what is not closed.
func expand(value string, property func(string) (string, bool)) (string, error) {
	if !strings.Contains(value, "${") {
		return value, nil
	}
	var b strings.Builder
	for rest := value; rest != ""; {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			break
		}
		closing := "}"
		if strings.HasPrefix(after, "{") {
			closing = "}}"
		}
		name, tail, closed := strings.Cut(after, closing)
		switch {
		case !closed:
			b.WriteString("${" + after)
			rest = ""
			continue
		case closing == "}}":
			b.WriteString("${" + name + "}}")
		case name == "/":
			b.WriteByte('/')
		default:
			v, ok := property(name)
			if !ok {
				return "", fmt.Errorf("the system property %q is not set; set it with -D%s=... or write its value", name, name)
			}
			b.WriteString(v)
		}
		rest = tail
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("the value is empty after its system properties are replaced")
	}
	return b.String(), nil
}
