package secure

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestNamesArePrintedAsByJava compares the results with what Java has printed for many kinds of names. To
// record them again: cd testdata && java Names.java >names.txt
func TestNamesArePrintedAsByJava(t *testing.T) {
	record, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(record)), "\n")
	if len(lines) < 100 {
		t.Fatalf("only %d names are recorded", len(lines))
	}
	for _, line := range lines {
		in, quoted, _ := strings.Cut(line, " ")
		der, err := hex.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		want, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		if got := nameText(der); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// TestSubjectsAreReadAsByJava compares the results with those of Java for many kinds of texts. To record
// them again: cd testdata && java Subjects.java >subjects.txt
func TestSubjectsAreReadAsByJava(t *testing.T) {
	record, err := os.ReadFile("testdata/subjects.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(record)), "\n")
	if len(lines) < 150 {
		t.Fatalf("only %d texts are recorded", len(lines))
	}
	for _, line := range lines {
		want, quoted, _ := strings.Cut(line, " ")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		if got := ValidSubject(text); got != (want == "true") {
			t.Errorf("%q: %t, in Java %s", text, got, want)
		}
	}
}

// TestNamesAreSubjects shows that every name in the form of NameOf can be an id in an ACL.
func TestNamesAreSubjects(t *testing.T) {
	record, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(record)), "\n") {
		_, quoted, _ := strings.Cut(line, " ")
		name, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		if !ValidSubject(name) {
			t.Errorf("%q is not valid", name)
		}
	}
}
