package page

import (
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"bellwether/internal/admin/view"
)

// funcs are the functions of the templates.
var funcs = template.FuncMap{
	"asset":    assetURL,
	"visible":  visible,
	"bytes":    func(n any) string { return byteCount(number(n)) },
	"count":    func(n any) string { return count(number(n)) },
	"plural":   func(n any, word string) string { return plural(number(n), word) },
	"ms":       milliseconds,
	"disk":     diskBytes,
	"lines":    lines,
	"hexdump":  hexdump,
	"hexlines": hexlines,
	"permits":  permits,
	"base":     path.Base,
	"parent":   path.Dir,
	"holder":   holder,
	"last":     func(list []string) string { return list[len(list)-1] },
	"instant":  func(t any) string { return instant(timeOf(t)) },
	"ago":      func(t any) string { return duration(time.Since(timeOf(t))) },
	"query":    url.QueryEscape,
}

// number returns an integer of any type, or what a pointer to one points to.
func number(n any) int64 { return reflect.Indirect(reflect.ValueOf(n)).Int() }

// timeOf returns a time, or what a pointer to one points to.
func timeOf(t any) time.Time {
	if at, ok := t.(*time.Time); ok {
		return *at
	}
	return t.(time.Time)
}

// diskBytes returns the size of a server's files. If logs and snapshots share a folder, both sizes are that of the
// folder.
func diskBytes(d *view.Disk) string {
	if d.LogBytes == d.SnapshotBytes {
		return byteCount(d.LogBytes)
	}
	return byteCount(d.LogBytes + d.SnapshotBytes)
}

// milliseconds returns a time in ms with at least three digits.
func milliseconds(ms float64) string {
	switch {
	case ms >= 100:
		return count(int64(ms + 0.5))
	case ms >= 10:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', 2, 64)
}

// lines returns data as text. It keeps line ends and tabs, and makes all other characters visible.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		for i, cell := range strings.Split(line, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			writeVisible(&b, cell)
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// writeVisible writes text of any length as visible does, in pieces that visible does not cut.
func writeVisible(b *strings.Builder, text string) {
	for text != "" {
		n := min(len(text), visibleMax)
		for n > visibleMax-utf8.UTFMax && n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		b.WriteString(visible(text[:n]))
		text = text[n:]
	}
}

// hexdump returns bytes, which are given in hexadecimal, in lines of 16 with their offsets and their text.
func hexdump(text string) string {
	b, err := hex.DecodeString(text)
	if err != nil {
		return text
	}
	return hex.Dump(b)
}

// hexlines returns data in hexadecimal, 16 bytes in a line, for an edit.
func hexlines(d view.Data) string {
	digits := d.Hex
	if digits == "" {
		digits = hex.EncodeToString([]byte(d.Text))
	}
	var b strings.Builder
	for i := 0; i < len(digits); i += 2 {
		switch {
		case i == 0:
		case i%32 == 0:
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(digits[i : i+2])
	}
	return b.String()
}

// holder returns the id of the client with a bid; the name of the bid if the id is not known.
func holder(clients []view.Participant, bid string) string {
	for _, c := range clients {
		if c.Bid == bid && c.ID != "" {
			return c.ID
		}
	}
	return path.Base(bid)
}

// permits says what the letters of permissions allow.
func permits(letters string) string {
	names := map[rune]string{'c': "create", 'd': "delete", 'r': "read", 'w': "write", 'a': "admin"}
	if len(letters) == len(names) {
		return "everything"
	}
	var list []string
	for _, l := range letters {
		list = append(list, names[l])
	}
	if list == nil {
		return "nothing"
	}
	return strings.Join(list, ", ")
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
		for end > visibleMax-utf8.UTFMax && !utf8.RuneStart(text[end]) {
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
