package jaas

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// recorded holds what the JDK has read in one file of testdata.
type recorded struct {
	Sections map[string][]recordedModule
	Error    string
}

type recordedModule struct {
	Class, Flag string
	Options     map[string]string
}

func readRecorded(t testing.TB) map[string]recorded {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]recorded
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func properties(name string) (string, bool) {
	v, ok := map[string]string{"bellwether.test": "VALUE", "empty": ""}[name]
	return v, ok
}

// stricter lists files that the JDK accepts and this package refuses.
var stricter = map[string]bool{"unclosed-comment.conf": true}

// TestFilesReadAsInTheJDK compares each file of testdata with what the JDK read in it.
func TestFilesReadAsInTheJDK(t *testing.T) {
	vectors := readRecorded(t)
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(files) != len(vectors) || len(files) == 0 {
		t.Fatalf("%d files, %d vectors, %v", len(files), len(vectors), err)
	}
	for name, want := range vectors {
		t.Run(name, func(t *testing.T) {
			f, err := Parse(name, readFile(t, name), properties)
			if wantErr := want.Error != "" || stricter[name]; (err != nil) != wantErr {
				t.Fatalf("error %v; the JDK's is %q", err, want.Error)
			}
			if err != nil {
				t.Log(err)
				return
			}
			got := map[string][]recordedModule{}
			for _, s := range f.Sections {
				for _, m := range s.Modules {
					options := map[string]string{}
					for _, o := range m.Options {
						options[o.Name] = o.Value.Reveal()
					}
					got[s.Name] = append(got[s.Name], recordedModule{m.Class, m.Flag, options})
				}
			}
			if !reflect.DeepEqual(got, want.Sections) {
				t.Errorf("got  %v\nwant %v", got, want.Sections)
			}
		})
	}
}

// TestErrorsNameThePlace checks that an error names the file, the line, the column, and what was
// expected.
func TestErrorsNameThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"Server x":                `f:1:8: expected { after the name Server of a section, found a word`,
		"Server {\n a.B\n}":       `f:3:1: expected required, requisite, sufficient or optional after a.B, found '}'`,
		"Server {\n\ta.B needed;": `f:2:6: expected required, requisite, sufficient or optional after a.B, found another word`,
		"Server { a.B required k=\"x\" \"tippy\" };":    `f:1:37: expected = after the name of an option, found '}'`,
		"Server { a.B required user_a \"tippy\"; };":    `f:1:30: expected = after the name of an option, found a quoted text`,
		"Server { a.B required user_a=; };":             `f:1:30: expected the value of user_a, found ';'`,
		"Server { a.B required user_a=tip\"py\"; };":    `f:1:37: expected = after the name of an option, found ';'`,
		"Server { a.B required k=v; }":                  `f:1:29: expected ; after the } of section Server, found the end of the file`,
		"Server { a.B required k=v;\n":                  `f:2:1: expected the class of a login module, or } at the end of section Server, found the end of the file`,
		"{ a.B required; };":                            `f:1:1: expected the name of a section, found '{'`,
		"Server { a.B required; };\nServer {};":         `f:2:1: the section Server is already in line 1; rename or remove one of them`,
		"Server { a.B required k=/etc/x; };":            `f:1:25: a single slash; a path must be in double quotes, and a comment begins with // or /*`,
		"Server { a.B required k=1tippy; };":            `f:1:25: a text that begins with '1' must be in double quotes`,
		"Server { a.B required k='tippy'; };":           `f:1:25: a single quote; use double quotes`,
		"# Server":                                      `f:1:1: # does not begin a comment; use //`,
		"/* é */ é @":                                   `f:1:11: '@' must be in double quotes`,
		"\n /* x":                                       `f:2:2: a comment without */`,
		"Server { a.B required k=\"tippy; };":           `f:1:25: a quoted text that is not closed on its line`,
		"Server { a.B required k=\"tippy\\":             `f:1:25: a quoted text that is not closed on its line`,
		"Server { a.B required k=\"tip\xff\"; };":       `f:1:29: a byte that is not UTF-8`,
		"Server \xff":                                   `f:1:8: a byte that is not UTF-8`,
		"Server { a.B required k=\"${nothing}\"; };":    `f:1:25: the value of k: the system property "nothing" is not set; set it with -Dnothing=... or write its value`,
		"Server { a.B required\n k=\"${empty}\"; };":    `f:2:4: the value of k: the value is empty after its system properties are replaced`,
		"Server { a.B required k=\"${tippy" + "\n}\";}": `f:1:25: a quoted text that is not closed on its line`,
	} {
		_, err := Parse("f", []byte(text), properties)
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := Parse("f", make([]byte, FileMax+1), nil); err == nil {
		t.Error("no limit")
	}
}

// TestByteOrderMarkIsIgnored checks a file that begins with a byte order mark, which some editors write.
func TestByteOrderMarkIsIgnored(t *testing.T) {
	f, err := Parse("f", []byte("\ufeffServer { a.B required; };"), nil)
	if err != nil || f.Sections[0].Name != "Server" {
		t.Errorf("%v, %v", f, err)
	}
}

func TestMissingSection(t *testing.T) {
	f, err := Parse("/etc/jaas.conf", []byte("A { a.B required; }; B { a.B required; };"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := f.Section("B"); err != nil || s.Name != "B" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := f.Section("Server"); err == nil || err.Error() != "/etc/jaas.conf has no section Server (it has: A, B)" {
		t.Error(err)
	}
	if _, err := (&File{Name: "f"}).Section("Server"); err == nil || err.Error() != "f has no section Server (it has: none)" {
		t.Error(err)
	}
}

// FuzzParse checks that a file can only lead to an error, that what the parser prints contains no value
// of an option, and that a file that was parsed and written again has the same meaning.
func FuzzParse(f *testing.F) {
	for name := range readRecorded(f) {
		f.Add(readFile(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("f", text, properties)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("no place: %v", err)
			}
			return
		}
		if !utf8.Valid(text) {
			// The parser does not read comments, so they may contain anything.
			return
		}
		var b strings.Builder
		for _, s := range file.Sections {
			s.Login()
			fmt.Fprintf(&b, "%s {\n", quote(s.Name))
			for _, m := range s.Modules {
				fmt.Fprintf(&b, "%s %s", quote(m.Class), m.Flag)
				for _, o := range m.Options {
					fmt.Fprintf(&b, " %s=%s", quote(o.Name), quote(o.Value.Reveal()))
				}
				b.WriteString(";\n")
			}
			b.WriteString("};\n")
		}
		if strings.Contains(b.String(), "${") {
			return // the value would be expanded twice
		}
		again, err := Parse("f", []byte(b.String()), nil)
		if err != nil || !same(file, again) {
			t.Errorf("%s\nreads as %v, %v", b.String(), again, err)
		}
	})
}

// quote writes a text in the form in which the parser reads it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func same(a, b *File) bool {
	if len(a.Sections) != len(b.Sections) {
		return false
	}
	for i, s := range a.Sections {
		o := b.Sections[i]
		if s.Name != o.Name || len(s.Modules) != len(o.Modules) {
			return false
		}
		for j, m := range s.Modules {
			n := o.Modules[j]
			if m.Class != n.Class || m.Flag != n.Flag || fmt.Sprint(reveal(m.Options)) != fmt.Sprint(reveal(n.Options)) {
				return false
			}
		}
	}
	return true
}

func reveal(options []Option) (out []string) {
	for _, o := range options {
		out = append(out, o.Name, o.Value.Reveal())
	}
	return out
}

// TestFileDoesNotPrintValues checks that passwords do not appear when a file or a login is printed.
func TestFileDoesNotPrintValues(t *testing.T) {
	f, err := Parse("f", readFile(t, "zookeeper.conf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	logins := []any{f, *f}
	for i := range f.Sections {
		l, err := f.Sections[i].Login()
		if err != nil {
			t.Fatal(err)
		}
		logins = append(logins, l, *l.Digest)
	}
	for _, v := range logins {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if out := fmt.Sprintf("%v %+v %#v %x ", v, v, v, v) + string(b); strings.Contains(out, "secret\"") || strings.Contains(out, "bobsecret") || strings.Contains(out, "adminsecret") {
			t.Error(out)
		}
	}

}
