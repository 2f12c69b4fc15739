package theatre

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// svg writes the elements of a drawing, and remembers where texts are.
type svg struct {
	strings.Builder
	texts []box
}

// box is where a text is drawn.
type box struct {
	x, y, w, h float64
	text       string
}

// f prints a length with one digit after the point at most.
func f(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func number64(n int64) string { return strconv.FormatInt(n, 10) }

// put writes an element; its arguments are lengths, numbers or texts, which are escaped.
func (s *svg) put(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case float64:
			args[i] = f(a)
		case string:
			args[i] = escape(a)
		}
	}
	fmt.Fprintf(s, format+"\n", args...)
}

// escape makes a text safe in XML. Characters that XML forbids even when they are escaped become "?".
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return html.EscapeString(s)
}

// text writes a text that begins at x on the line y.
func (s *svg) text(class string, x, y, w float64, text string) {
	s.texts = append(s.texts, box{x, y - 10, w, 13, text})
	s.put(`<text class="%s" x="%s" y="%s">%s</text>`, class, x, y, text)
}
