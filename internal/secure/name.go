package secure

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// NameOf returns the subject of a certificate as Java prints it: RFC 2253, with Java's choice of escaped
// characters. The text is the id of the scheme x509 and is stored in ACLs, so it must be the same on
// every server. crypto/x509/pkix prints other texts.
func NameOf(c *x509.Certificate) string { return nameText(c.RawSubject) }

// attribute is an attribute of a name, such as CN=x; attributeSET is a part of a name.
// encoding/asn1 recognises a SET by the name of its type.
type (
	attribute struct {
		ID    asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	attributeSET []attribute
)

// keywords are the attributes that Java prints with a word. It prints all others as numbers.
var keywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}

// nameText prints a name in DER, the last part first. It returns an empty text if the bytes are not a
// name; crypto/x509 refuses a certificate with such a subject.
func nameText(der []byte) string {
	var parts []attributeSET
	if err := unmarshal(der, &parts); err != nil {
		return ""
	}
	var text strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		for n, a := range parts[i] {
			switch {
			case n > 0:
				text.WriteByte('+')
			case text.Len() > 0:
				text.WriteByte(',')
			}
			text.WriteString(a.text())
		}
	}
	return text.String()
}

// text prints an attribute. A value that is not a text, or that belongs to an attribute without a
// keyword, is printed in hex.
func (a attribute) text() string {
	keyword, known := keywords[a.ID.String()]
	if !known {
		keyword = a.ID.String()
	}
	if known && a.isText() {
		return keyword + "=" + escape(javaText(a.Value.Bytes))
	}
	return keyword + "=#" + hex.EncodeToString(a.Value.FullBytes)
}

// isText reports whether Java treats the value as a text.
func (a attribute) isText() bool {
	switch a.Value.Tag {
	case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String, asn1.TagGeneralString, asn1.TagBMPString:
		return a.Value.Class == asn1.ClassUniversal
	}
	return false
}

// escape escapes the value of an attribute.
func escape(value string) string {
	var text strings.Builder
	inner := strings.TrimLeft(value, " ")
	head := len(value) - len(inner)
	inner = strings.TrimRight(inner, " ")
	text.WriteString(strings.Repeat(`\ `, head))
	for _, r := range inner {
		switch {
		case strings.ContainsRune(`,=+<>#;"\`, r):
			text.WriteByte('\\')
			text.WriteRune(r)
		case r == 0:
			text.WriteString(`\00`)
		default:
			text.WriteRune(r)
		}
	}
	text.WriteString(strings.Repeat(`\ `, len(value)-head-len(inner)))
	return text.String()
}

// javaText decodes bytes as Java does: as UTF-8 whatever the type of the text, with U+FFFD
// for what is not UTF-8.
func javaText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var text bytes.Buffer
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = malformed(b)
		}
		text.WriteRune(r)
		b = b[n:]
	}
	return text.String()
}

// malformed returns how many bytes at the beginning of b Java replaces with one U+FFFD.
func malformed(b []byte) int {
	continues := func(i int) bool { return i < len(b) && b[i]&0xc0 == 0x80 }
	three := b[0] >= 0xe0 && b[0] <= 0xef
	four := b[0] >= 0xf0 && b[0] <= 0xf4
	switch {
	case !three && !four || !continues(1),
		b[0] == 0xe0 && b[1] < 0xa0, b[0] == 0xf0 && b[1] < 0x90, b[0] == 0xf4 && b[1] >= 0x90:
		return 1
	case !continues(2):
		return 2
	}
	return 3
}
