package ensemble

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Property is one key and value of a properties text.
type Property struct {
	Key, Value string
	Line       int // 1-based line on which the property begins
}

// SyntaxError is the error for text that the properties rules do not allow. Only a broken
// \uXXXX escape is such text; all other input has a meaning.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Latin1 turns the bytes of a properties file, which are ISO-8859-1, into a string. Texts
// that servers exchange are UTF-8 and do not need that.
func Latin1(file []byte) string {
	runes := make([]rune, len(file))
	for i, b := range file {
		runes[i] = rune(b)
	}
	return string(runes)
}

// ReadProperties parses text by the rules of Java properties, as ZooKeeper parses
// zoo.cfg. A line whose first non-blank character is # or ! is a comment. Key and value
// are separated by the first unescaped '=', ':' or blank. A line that ends with an odd
// number of backslashes continues on the next one. Key and value are trimmed. Properties
// come in the order of the text, with duplicates; callers use the last one. (If the
// last line is a single backslash, Java reads an empty key, and this function reads nothing.)
func ReadProperties(text string) ([]Property, error) {
	var props []Property
	r := lineReader{rest: text}
	for {
		raw, line, ok := r.next()
		if !ok {
			return props, nil
		}
		key, value := splitProperty(raw)
		k, err := unescape(key)
		if err == nil {
			value, err = unescape(value)
		}
		if err != nil {
			return nil, &SyntaxError{Line: line, Reason: err.Error()}
		}
		props = append(props, Property{Key: trim(k), Value: trim(value), Line: line})
	}
}

// lineReader divides a text into logical lines.
type lineReader struct {
	rest string
	line int // natural lines consumed
}

// next returns the next logical line that is neither blank nor a comment, with its
// escapes, and the number of its first natural line.
func (r *lineReader) next() (raw string, line int, ok bool) {
	for r.rest != "" {
		part := strings.TrimLeft(r.natural(), blanks)
		line = r.line
		var joined strings.Builder
		for oddBackslashes(part) && (joined.Len() > 0 || !isComment(part)) {
			joined.WriteString(part[:len(part)-1])
			part = strings.TrimLeft(r.natural(), blanks)
		}
		if joined.Len() == 0 && isComment(part) {
			continue
		}
		joined.WriteString(part)
		if joined.Len() > 0 {
			return joined.String(), line, true
		}
	}
	return "", 0, false
}

// isComment reports whether a line begins like a comment. Such a line is a comment unless
// it continues another line.
func isComment(s string) bool { return s != "" && (s[0] == '#' || s[0] == '!') }

// blanks are the characters that separate key and value.
const blanks = " \t\f"

// natural reads one line, which ends with \n, \r, \r\n or the end of the text.
func (r *lineReader) natural() string {
	if r.rest != "" {
		r.line++
	}
	i := strings.IndexAny(r.rest, "\r\n")
	if i < 0 {
		line := r.rest
		r.rest = ""
		return line
	}
	line, rest := r.rest[:i], r.rest[i:]
	if rest = strings.TrimPrefix(rest, "\r\n"); len(rest) == len(r.rest)-i {
		rest = rest[1:]
	}
	r.rest = rest
	return line
}

func oddBackslashes(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// splitProperty splits a logical line at its separator: blanks, then at most one '=' or
// ':', then blanks.
func splitProperty(raw string) (key, value string) {
	end := len(raw)
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=:"+blanks, raw[i]) >= 0 {
			end = i
			break
		}
	}
	key, value = raw[:end], strings.TrimLeft(raw[end:], blanks)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], blanks)
	}
	return key, value
}

// unescape resolves backslash escapes. Two \u escapes may form one supplementary
// character.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	units := make([]uint16, 0, len(s))
	for s != "" {
		plain, rest, found := strings.Cut(s, `\`)
		units = append(units, utf16.Encode([]rune(plain))...)
		if s = rest; !found || s == "" {
			break
		}
		u, n, err := escape(s)
		if err != nil {
			return "", err
		}
		units = append(units, u...)
		s = s[n:]
	}
	return string(utf16.Decode(units)), nil
}

// escape parses what follows a backslash: it returns the meaning and the length in bytes.
func escape(s string) ([]uint16, int, error) {
	switch s[0] {
	case 't':
		return []uint16{'\t'}, 1, nil
	case 'n':
		return []uint16{'\n'}, 1, nil
	case 'r':
		return []uint16{'\r'}, 1, nil
	case 'f':
		return []uint16{'\f'}, 1, nil
	case 'u':
		u, ok := hex4(s[1:])
		if !ok {
			return nil, 0, fmt.Errorf(`%q is not a \u escape: four hexadecimal digits must follow; write \\ or / in Windows paths`, `\`+s[:min(5, len(s))])
		}
		return []uint16{u}, 5, nil
	}
	r, n := utf8.DecodeRuneInString(s)
	return utf16.Encode([]rune{r}), n, nil
}

// hex4 parses the four hexadecimal digits at the start of s.
func hex4(s string) (uint16, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var u uint16
	for _, c := range []byte(s[:4]) {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | uint16(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | uint16(c-'a'+10)
		case c >= 'A' && c <= 'F':
			u = u<<4 | uint16(c-'A'+10)
		default:
			return 0, false
		}
	}
	return u, true
}

// trim removes blanks and control characters at both ends.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}
