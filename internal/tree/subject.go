package tree

import "strings"

// attributeTypes are the names of attributes that an X.500 subject may use. Numbers are
// allowed too.
var attributeTypes = map[string]bool{
	"CN": true, "C": true, "L": true, "S": true, "ST": true, "O": true, "OU": true, "T": true, "IP": true,
	"STREET": true, "DC": true, "DNQUALIFIER": true, "DNQ": true, "SURNAME": true, "GIVENNAME": true,
	"INITIALS": true, "GENERATION": true, "EMAILADDRESS": true, "UID": true, "SERIALNUMBER": true,
}

// validSubject reports whether the text is a distinguished name (RFC 2253):
// attributes, each a type, an equals sign and a value, separated by commas,
// semicolons or plus signs that are neither escaped nor quoted.
func validSubject(s string) bool {
	start, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s) {
				return false
			}
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ';' || c == '+'):
			if !validAttribute(s[start:i]) {
				return false
			}
			start = i + 1
		}
	}
	return !quoted && (s == "" || validAttribute(s[start:]))
}

func validAttribute(s string) bool {
	name, _, found := strings.Cut(s, "=")
	name = strings.ToUpper(strings.TrimSpace(name))
	return found && (attributeTypes[name] || validOID(strings.TrimPrefix(name, "OID.")))
}

// validOID reports whether a text is at least two numbers, separated by dots.
func validOID(s string) bool {
	numbers := strings.Split(s, ".")
	for _, n := range numbers {
		if n == "" || strings.Trim(n, "0123456789") != "" {
			return false
		}
	}
	return len(numbers) >= 2
}
