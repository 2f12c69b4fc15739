package ensemble

import (
	"slices"
	"strings"
	"testing"
)

// TestReadProperties shows each rule of the properties syntax.
func TestReadProperties(t *testing.T) {
	cases := []struct {
		name, text string
		want       []Property
	}{
		{"empty", "", nil},
		{"separators", "a=1\nb : 2\nc 3\nd\t=\t4\ne:=5\nf==6\n", []Property{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 4}, {"e", "=5", 5}, {"f", "=6", 6}}},
		{"comments", "# x=1\n  ! y=2\n\t#z\n\na=1 # five\n", []Property{{"a", "1 # five", 5}}},
		{"trimmed", "  a  =  1 \t \n", []Property{{"a", "1", 1}}},
		{"escaped blanks are trimmed too", "a=\\ 1\\t\\n\n", []Property{{"a", "1", 1}}},
		{"continuation", "a=1,\\\n   2,\\\n\t3\nb=4\n", []Property{{"a", "1,2,3", 1}, {"b", "4", 4}}},
		{"even backslashes do not continue", "a=1\\\\\nb=2\n", []Property{{"a", `1\`, 1}, {"b", "2", 2}}},
		{"continued comment is no continuation", "# a \\\nb=2\n", []Property{{"b", "2", 2}}},
		{"hash in a continuation is text", "a=1\\\n#2\n", []Property{{"a", "1#2", 1}}},
		{"blank continuation ends the line", "a=1\\\n\nb=2\n", []Property{{"a", "1", 1}, {"b", "2", 3}}},
		{"backslash alone", "\\\nb=2\n\\\n", []Property{{"b", "2", 1}}},
		{"comment after a backslash alone", "\\\n#b=2\n", nil},
		{"continued comment after a backslash alone", "\\\n#b\\\nc=3", []Property{{"c", "3", 3}}},
		{"backslash at the end", "a=1\\", []Property{{"a", "1", 1}}},
		{"escapes", `a=x\ty\\z\q\:\u00e9\uD83D\uDE00` + "\n", []Property{{"a", "x\ty\\zq:é😀", 1}}},
		{"escaped separator in a key", `a\=b\ c=1` + "\n", []Property{{"a=b c", "1", 1}}},
		{"windows path loses its backslashes", `dataDir=C:\zk\data` + "\n", []Property{{"dataDir", "C:zkdata", 1}}},
		{"line ends", "a=1\rb=2\r\nc=3\n\rd=4", []Property{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 5}}},
		{"latin 1", Latin1([]byte("a=\xe9\\\xe9\n")), []Property{{"a", "éé", 1}}},
		{"utf 8", "a=é😀\\é\n", []Property{{"a", "é😀é", 1}}},
		{"duplicates are kept in order", "a=1\na=2\n", []Property{{"a", "1", 1}, {"a", "2", 2}}},
		{"no value", "a\nb=\n", []Property{{"a", "", 1}, {"b", "", 2}}},
		{"no key", "=1\n", []Property{{"", "1", 1}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadProperties(c.text)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// TestReadPropertiesRefusesBrokenEscape shows the only syntax error there is.
func TestReadPropertiesRefusesBrokenEscape(t *testing.T) {
	for _, text := range []string{"a=1\nb=\\u12\n", "a=1\n\\uzzzz=1", "a=1\nb=\\u123g"} {
		_, err := ReadProperties(text)
		if err == nil || !strings.HasPrefix(err.Error(), "line 2: ") || !strings.Contains(err.Error(), "four hexadecimal digits") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// FuzzReadProperties shows that any bytes are read without a panic, that keys
// and values come trimmed, and that the lines named exist and do not go back.
func FuzzReadProperties(f *testing.F) {
	f.Add("a=1\\\n 2\n# x\nb : \\u00e9")
	f.Add("\\\r\n#\\")
	f.Fuzz(func(t *testing.T, text string) {
		props, err := ReadProperties(text)
		if err != nil {
			return
		}
		lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r")
		last := 0
		for _, p := range props {
			if trim(p.Key) != p.Key || trim(p.Value) != p.Value {
				t.Errorf("not trimmed: %+v", p)
			}
			if p.Line <= last || p.Line > lines {
				t.Errorf("line %d after %d of %d", p.Line, last, lines)
			}
			last = p.Line
		}
	})
}
