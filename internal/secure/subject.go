package secure

import (
	"encoding/asn1"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// subjectWords are the words by which Java knows an attribute when it reads a subject. When it prints
// one, it uses fewer words.
var subjectWords = []string{
	"CN", "C", "L", "S", "ST", "O", "OU", "T", "IP", "STREET", "DC", "DNQUALIFIER", "DNQ", "SURNAME", "GIVENNAME", "INITIALS",
	"GENERATION", "EMAIL", "EMAILADDRESS", "UID", "SERIALNUMBER",
}

// ValidSubject reports whether Java can read a text as a subject. Only such a text can be an id in an ACL
// of the scheme x509.
func ValidSubject(text string) bool {
	if text == "" {
		return true
	}
	for {
		name, rest, ok := strings.Cut(text, "=")
		if !ok || !validKeyword(strings.TrimSpace(name)) {
			return false
		}
		rest, ok = skipValue(strings.TrimLeft(rest, " \n"))
		if !ok {
			return false
		}
		if rest == "" {
			return true
		}
		text = rest[1:] // the text after the separator
	}
}

// validKeyword reports whether a text names an attribute: by a word, or by numbers.
func validKeyword(name string) bool {
	name = strings.ToUpper(name)
	if slices.Contains(subjectWords, name) {
		return true
	}
	parts := strings.Split(strings.TrimPrefix(name, "OID."), ".")
	for i, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return false
		}
		n, err := strconv.Atoi(part)
		first := parts[0]
		if i == 0 && (err != nil || n > 2) || i == 1 && first != "2" && (err != nil || n > 39) {
			return false
		}
	}
	return len(parts) > 1
}

// separators may follow a value.
const separators = ",;+"

// skipValue returns the text after a value: it is empty, or begins with a separator.
func skipValue(s string) (rest string, ok bool) {
	switch {
	case strings.HasPrefix(s, "#"):
		end := strings.IndexAny(s, separators)
		if end < 0 {
			end = len(s)
		}
		der, err := hex.DecodeString(s[1:end])
		return s[end:], err == nil && unmarshal(der, new(asn1.RawValue)) == nil
	case strings.HasPrefix(s, `"`):
		return skipQuoted(s[1:])
	}
	for s != "" && !strings.Contains(separators, s[:1]) {
		switch {
		case s[0] == '\\':
			if s, ok = skipEscape(s); !ok {
				return "", false
			}
		case strings.Contains(`<>"`, s[:1]):
			return "", false
		default:
			s = s[1:]
		}
	}
	return s, true
}

// skipQuoted is like skipValue, but for the text after an opening quotation mark.
func skipQuoted(s string) (rest string, ok bool) {
	for s != "" {
		switch s[0] {
		case '\\':
			if s, ok = skipEscape(s); !ok {
				return "", false
			}
		case '"':
			s = strings.TrimLeft(s[1:], " \n")
			return s, s == "" || strings.Contains(separators, s[:1])
		default:
			s = s[1:]
		}
	}
	return "", false
}

// skipEscape skips a backslash with two hexadecimal digits or one special character.
func skipEscape(s string) (rest string, ok bool) {
	if len(s) > 2 {
		if _, err := hex.DecodeString(s[1:3]); err == nil {
			return s[3:], true
		}
	}
	if len(s) > 1 && strings.Contains(",=\n+<>#;\\\" ", s[1:2]) {
		return s[2:], true
	}
	return "", false
}
