package wiretest

import (
	"bufio"
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bellwether/wire"
)

// Recode decodes b into rec, checks that rec encodes to b, and returns rec.
func Recode[R wire.Record](t *testing.T, b []byte, rec R) R {
	t.Helper()
	DecodeWhole(t, b, rec)
	EqualBytes(t, wire.Append(nil, rec), b)
	return rec
}

// Family holds the records of one package, whose tests check them against the rules of
// this file.
type Family struct {
	// New has a function for each record, which returns an empty one. Fuzzing refers to a
	// record by its index, so add new ones at the end.
	New []func() wire.Record
	// NoEnd are the records that go on to the end of their input, and so cannot
	// be read from a stream.
	NoEnd []wire.Record
}

// nameOf returns the name of a record's type without its package.
func nameOf(r wire.Record) string { return reflect.TypeOf(r).Elem().Name() }

// Kind returns the number of a record in New.
func (f *Family) Kind(t testing.TB, r wire.Record) byte {
	t.Helper()
	for i, make := range f.New {
		if nameOf(make()) == nameOf(r) {
			return byte(i)
		}
	}
	t.Fatalf("%T is not in the list of records", r)
	return 0
}

// CheckListed fails if a type of the package in the current folder has a method
// Code and is not in New, so that no record goes without tests and fuzzing.
func (f *Family) CheckListed(t *testing.T) {
	listed := map[string]bool{}
	for _, make := range f.New {
		listed[nameOf(make())] = true
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			code, ok := d.(*ast.FuncDecl)
			if !ok || code.Recv == nil || code.Name.Name != "Code" {
				continue
			}
			found++
			receiver := code.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
			if !listed[receiver] {
				t.Errorf("%s: record %s is not listed", e.Name(), receiver)
			}
		}
	}
	if found != len(f.New) {
		t.Errorf("%d records in the source, %d listed", found, len(f.New))
	}
}

// Check decodes the input b into a record that make returns, and checks every rule of decoding.
// Decoding does not panic, and allocates no more than its budget. Canonical input is encoded to the
// same bytes again, other input to different bytes. Those bytes decode to the same values. Decoding
// from a stream gives the same result as decoding from memory.
func (f *Family) Check(t *testing.T, make func() wire.Record, b []byte) {
	t.Helper()
	var first wire.Record
	var c wire.Coder
	CheckAllocated(t, AllocBudget(len(b)), func() {
		first, c = make(), wire.Decoder(b)
		first.Code(&c)
	})
	if c.Err() != nil {
		if strings.Contains(c.Err().Error(), "offset -") {
			t.Errorf("%T: error %v", first, c.Err())
		}
		return
	}
	encoded := wire.Append(nil, first)
	if same := bytes.Equal(encoded, b[:c.Offset()]); same != c.Canonical() {
		t.Errorf("%T: canonical %v, but\n%x encodes to\n%x", first, c.Canonical(), b[:c.Offset()], encoded)
	}
	second := make()
	DecodeWhole(t, encoded, second)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("%T: %+v is encoded to bytes that decode to %+v", first, first, second)
	}
	f.checkStream(t, make(), first, b, &c)
}

// checkStream decodes b from a stream into again. The record must equal first, which c
// has decoded from memory, and the stream must then go on with the bytes that c has left.
func (f *Family) checkStream(t *testing.T, again, first wire.Record, b []byte, c *wire.Coder) {
	t.Helper()
	if !f.hasEnd(first) {
		return
	}
	r := bufio.NewReaderSize(bytes.NewReader(b), 16)
	if err := wire.ReadRecord(r, again, len(b)); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("%T from a stream: %+v, error %v, want %+v", first, again, err, first)
	}
	if rest := restOf(t, r); !bytes.Equal(rest, b[c.Offset():]) {
		t.Errorf("%T: the stream goes on with %x, want %x", first, rest, b[c.Offset():])
	}
}

// hasEnd reports whether the encoding of a record shows where it ends.
func (f *Family) hasEnd(r wire.Record) bool {
	return !slices.ContainsFunc(f.NoEnd, func(other wire.Record) bool { return nameOf(other) == nameOf(r) })
}

// CheckNoEnd fails if a record of NoEnd can be read from a stream. Such a record has no
// length, so reading it would also take the bytes after it.
func (f *Family) CheckNoEnd(t *testing.T, raw []byte) {
	for _, rec := range f.NoEnd {
		err := wire.ReadRecord(bufio.NewReader(bytes.NewReader(raw)), rec, len(raw))
		if !errors.Is(err, wire.ErrNoEnd) {
			t.Errorf("%T: error %v, want %v", rec, err, wire.ErrNoEnd)
		}
	}
}

func restOf(t testing.TB, r *bufio.Reader) []byte {
	t.Helper()
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return rest.Bytes()
}

// CheckBudgets decodes, as each record, the inputs that make a decoder allocate
// the most for their length, and fails where that is more than the budget.
func (f *Family) CheckBudgets(t *testing.T) {
	for name, b := range greedyInputs(t) {
		t.Run(name, func(t *testing.T) {
			for _, make := range f.New {
				CheckAllocated(t, AllocBudget(len(b)), func() {
					c := wire.Decoder(b)
					make().Code(&c)
				})
				CheckAllocated(t, AllocBudget(len(b))+2*ReadStep, func() {
					wire.ReadRecord(bufio.NewReaderSize(bytes.NewReader(b), 16), make(), len(b))
				})
			}
		})
	}
}

// greedyInputs returns inputs that claim or hold many small elements.
func greedyInputs(t *testing.T) map[string][]byte {
	const size = 64 << 10
	repeat := func(head, unit string) []byte {
		b := BytesOf(t, head)
		return append(b, bytes.Repeat(BytesOf(t, unit), (size-len(b))/(len(strings.ReplaceAll(unit, " ", ""))/2))...)
	}
	const zxid, anyHeader = "0000000000000001 ", "0100000ed48f0000 00000001 0000000000000001 0000000000000001 "
	return map[string][]byte{
		"zeros":                        make([]byte, size),
		"a count of empty strings":     repeat("00003ff0", "00000000"),
		"a count beyond the input":     repeat(MaxInt, "00000000"),
		"watches":                      repeat(zxid+"00003ff0", "00000000"),
		"an ACL of empty identities":   repeat("00000000 00000000 00001540", "00000001 00000000 00000000"),
		"a multi of empty reads":       repeat("", "00000004 00 ffffffff 00000000 00"),
		"a multi of empty deletes":     repeat("", "00000002 00 ffffffff 00000000 00000000"),
		"a multi of empty creates":     repeat("", "00000001 00 ffffffff 00000000 00000000 00000000 00000000"),
		"results without a body":       repeat("", "00000002 00 00000000"),
		"results of empty paths":       repeat("", "00000001 00 00000000 00000000"),
		"results of empty lists":       repeat("", "00000008 00 00000000 00000000"),
		"a logged multi of deletes":    repeat(anyHeader+"0000000e 00001550", "00000002 00000004 00000000"),
		"a logged multi of errors":     repeat(anyHeader+"0000000e 00001550", "ffffffff 00000004 ffffffff"),
		"a logged create of no length": repeat(anyHeader+"00000001 00000000 00000000 00001540", "00000001 00000000 00000000"),
		"a closed session of nothing":  repeat(anyHeader+"fffffff5 00003ff0", "00000000"),
		"a packet of empty identities": repeat("00000001"+zxid+Null+"00001ff0", "00000000 00000000"),
		"malformed text":               repeat("0000fff0", "80"),
		"addresses of no length":       repeat("ffffffffffff0001 0000000000000001 000007f0", "7c"),
	}
}
