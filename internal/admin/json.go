package admin

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose fields keep their order.
type object []field

type field struct {
	name  string
	value any // nil, bool, int, int64, float64, string, texts, list, object or entries
}

// number is a number in the form in which it is shown, or NaN, Infinity or -Infinity.
type number string

// list is a JSON array. texts is one whose elements are strings, and entries an object whose
// fields are produced one by one, because there may be millions of them.
type (
	list    []any
	texts   []string
	entries func(yield func(name string, value any) bool)
)

// writeJSON writes a value as ZooKeeper's AdminServer does: two blanks for each level, a
// blank on both sides of a colon, and arrays in one line. It returns no error, because w keeps the
// first one until Flush.
func writeJSON(w *bufio.Writer, value any, indent string) {
	switch v := value.(type) {
	case nil:
		w.WriteString("null")
	case bool:
		w.WriteString(strconv.FormatBool(v))
	case int:
		w.WriteString(strconv.Itoa(v))
	case int64:
		w.WriteString(strconv.FormatInt(v, 10))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			writeString(w, javaDouble(v))
		} else {
			w.WriteString(javaDouble(v))
		}
	case string:
		writeString(w, v)
	case number:
		if text := string(v); strings.HasPrefix(strings.TrimPrefix(text, "-"), "I") || text == "NaN" {
			writeString(w, text)
		} else {
			w.WriteString(text)
		}
	case texts:
		writeList(w, len(v), func(i int) { writeString(w, v[i]) })
	case list:
		writeList(w, len(v), func(i int) { writeJSON(w, v[i], indent) })
	case object:
		writeFields(w, func(yield func(string, any) bool) {
			for _, f := range v {
				if !yield(f.name, f.value) {
					return
				}
			}
		}, indent)
	case entries:
		writeFields(w, v, indent)
	default:
		panic(fmt.Sprintf("admin: a %T is not a JSON value", value))
	}
}

func writeList(w *bufio.Writer, n int, element func(i int)) {
	w.WriteString("[ ")
	for i := range n {
		if i > 0 {
			w.WriteString(", ")
		}
		element(i)
	}
	if n > 0 {
		w.WriteByte(' ')
	}
	w.WriteByte(']')
}

func writeFields(w *bufio.Writer, all entries, indent string) {
	inner, begun := indent+"  ", false
	w.WriteByte('{')
	for name, value := range all {
		if begun {
			w.WriteByte(',')
		}
		begun = true
		w.WriteByte('\n')
		w.WriteString(inner)
		writeString(w, name)
		w.WriteString(" : ")
		writeJSON(w, value, inner)
	}
	if begun {
		w.WriteByte('\n')
		w.WriteString(indent)
	} else {
		w.WriteByte(' ')
	}
	w.WriteByte('}')
}

// writeString writes a string with the escapes that JSON requires, and no others. A byte
// that is not UTF-8 becomes U+FFFD.
func writeString(w *bufio.Writer, s string) {
	w.WriteByte('"')
	for from := 0; from < len(s); {
		r, n := utf8.DecodeRuneInString(s[from:])
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteByte(byte(r))
		case r < ' ':
			writeControl(w, r)
		default:
			w.WriteRune(r)
		}
		from += n
	}
	w.WriteByte('"')
}

// writeControl writes a control character.
func writeControl(w *bufio.Writer, r rune) {
	const short = "\bb\tt\nn\ff\rr"
	if i := strings.IndexRune(short, r); i >= 0 {
		w.WriteByte('\\')
		w.WriteByte(short[i+1])
		return
	}
	fmt.Fprintf(w, "\\u%04X", r)
}

// javaDouble formats a value as Java formats a double: 0.0, 0.1538, 1.0E7.
func javaDouble(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case a == 0 || a >= 1e-3 && a < 1e7:
		return withPoint(strconv.FormatFloat(v, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exponent) // FormatFloat has written a number
	return withPoint(mantissa) + "E" + strconv.Itoa(n)
}

// withPoint adds .0 to a number without a fraction.
func withPoint(t string) string {
	if strings.Contains(t, ".") {
		return t
	}
	return t + ".0"
}

// rounded rounds to four places, as ZooKeeper does with averages.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }
