package sasl

import (
	"fmt"
	"strings"
)

// directives are the key=value pairs of a DIGEST-MD5 token, by key in lower case.
type directives map[string]string

// known are the directives with a meaning. Others are ignored (RFC 2831, auth-param).
var known = map[string]bool{
	"username": true, "realm": true, "nonce": true, "cnonce": true, "nc": true, "qop": true, "digest-uri": true,
	"response": true, "maxbuf": true, "charset": true, "cipher": true, "authzid": true,
	"stale": true, "algorithm": true, "rspauth": true,
}

// parseDirectives reads a token. Pairs are separated by commas or white space, as the JDK reads them, and
// values may be quoted. A known key may occur only once. Only a challenge may have several realms, of
// which the first one counts.
func parseDirectives(token []byte, realms bool) (directives, error) {
	out := directives{}
	p := directiveParser{rest: string(token)}
	for {
		p.rest = strings.TrimLeft(p.rest, ", \t\r\n")
		if p.rest == "" {
			return out, nil
		}
		key, value, err := p.pair()
		if err != nil {
			return nil, err
		}
		key = strings.ToLower(key)
		if _, again := out[key]; again && known[key] {
			if key == "realm" && realms {
				continue
			}
			return nil, fmt.Errorf("DIGEST-MD5: more than one %s", key)
		}
		out[key] = value
	}
}

// directiveParser takes pairs off the front of rest.
type directiveParser struct {
	rest string
}

const blanks = " \t\r\n"

func (p *directiveParser) pair() (key, value string, err error) {
	key, rest, ok := strings.Cut(p.rest, "=")
	if !ok {
		return "", "", fmt.Errorf("DIGEST-MD5: %s has no value", quoteShort(p.rest))
	}
	key = strings.TrimRight(key, blanks)
	if key == "" || strings.ContainsAny(key, ","+blanks) {
		return "", "", fmt.Errorf("DIGEST-MD5: %s is not the name of a directive", quoteShort(key))
	}
	p.rest = strings.TrimLeft(rest, blanks)
	if p.rest == "" {
		return "", "", fmt.Errorf("DIGEST-MD5: %s has no value", quoteShort(key))
	}
	if p.rest[0] == '"' {
		value, err = p.quoted(key)
		return key, value, err
	}
	end := strings.IndexAny(p.rest, ","+blanks)
	if end < 0 {
		end = len(p.rest)
	}
	value, p.rest = p.rest[:end], p.rest[end:]
	return key, value, nil
}

// quoted takes a quoted value. A backslash stands before any byte that is to be taken literally.
func (p *directiveParser) quoted(key string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			if p.rest != "" && !strings.ContainsRune(","+blanks, rune(p.rest[0])) {
				return "", fmt.Errorf("DIGEST-MD5: no comma after the value of %s", quoteShort(key))
			}
			return b.String(), nil
		case c == '\\' && i+1 < len(p.rest):
			i++
			b.WriteByte(p.rest[i])
		case c == '\\':
			return "", fmt.Errorf("DIGEST-MD5: the value of %s ends with a backslash", quoteShort(key))
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("DIGEST-MD5: the value of %s has no closing quote", quoteShort(key))
}

// appendQuoted appends key="value", with a backslash before each byte that the JDK escapes:
// quotes, backslashes, and control characters other than tab, line feed and return.
func appendQuoted(b []byte, key, value string) []byte {
	b = append(append(b, key...), `="`...)
	for i := range len(value) {
		c := value[i]
		if c == '"' || c == '\\' || c == 0x7f || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, '"')
}

// shortMax is how many bytes of the other end's text an error message quotes.
const shortMax = 64

// quoteShort quotes the other end's text for an error message.
func quoteShort(s string) string {
	if len(s) > shortMax {
		return fmt.Sprintf("%q and %d more bytes", s[:shortMax], len(s)-shortMax)
	}
	return fmt.Sprintf("%q", s)
}
