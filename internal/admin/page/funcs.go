package page

import (
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// funcs are the functions of the templates.
var funcs = template.FuncMap{
	"asset":   assetURL,
	"visible": visible,
	"bytes":   byteCount,
	"count":   func(n any) string { return count(reflect.ValueOf(n).Int()) },
	"plural":  plural,
	"instant": instant,
	"ago":     func(t time.Time) string { return duration(time.Since(t)) },
	"query":   url.QueryEscape,
}

// visibleMax is how many bytes of a name are shown.
const visibleMax = 300

// visible returns text in which every character can be seen: those that do not print, those
// that change the direction of text, and bytes that are not UTF-8 are escaped as in Go. Long
// text is cut.
func visible(text string) string {
	cut := ""
	if len(text) > visibleMax {
		end := visibleMax
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		cut = fmt.Sprintf("… (%s in all)", byteCount(int64(len(text))))
		text = text[:end]
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		if c == utf8.RuneError && n == 1 || !strconv.IsPrint(c) {
			quoted := strconv.Quote(text[i : i+n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String() + cut
}

// byteCount returns a number of bytes with a unit.
func byteCount(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1024, 0
	for ; v >= 1023.95 && unit < 4; unit++ {
		v /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[unit])
}

// thin is the space between groups of digits: narrow, and lines do not break at it.
const thin = "\u202f"

// count returns a number with its digits in groups of three.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if text[0] == '-' {
		sign, text = "−", text[1:]
	}
	for i := len(text) - 3; i > 0 && len(text) > 4; i -= 3 {
		text = text[:i] + thin + text[i:]
	}
	return sign + text
}

// plural returns a number and a word, with an s unless the number is 1.
func plural(n int64, word string) string {
	if n != 1 {
		word += "s"
	}
	return count(n) + "\u00a0" + word
}

// instant returns a time in UTC, as all tools of the project print it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// duration returns a length of time in its two largest units.
func duration(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	days, hours, minutes, seconds := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds)
	}
	return fmt.Sprintf("%d s", seconds)
}
