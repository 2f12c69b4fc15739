package wire

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

// records makes an empty one of every record of the package. Fuzzing numbers
// them, so new ones belong at the end.
var records = []func() Record{
	func() Record { return new(ConnectRequest) },
	func() Record { return new(ConnectResponse) },
	func() Record { return new(RequestHeader) },
	func() Record { return new(ReplyHeader) },
	func() Record { return new(CreateRequest) },
	func() Record { return new(CreateTTLRequest) },
	func() Record { return new(PathRequest) },
	func() Record { return new(NullPathRequest) },
	func() Record { return new(PathVersionRequest) },
	func() Record { return new(PathWatchRequest) },
	func() Record { return new(SetDataRequest) },
	func() Record { return new(SetACLRequest) },
	func() Record { return new(ReconfigRequest) },
	func() Record { return new(AuthRequest) },
	func() Record { return new(SASLRequest) },
	func() Record { return new(AddWatchRequest) },
	func() Record { return new(WatchesRequest) },
	func() Record { return new(SetWatchesRequest) },
	func() Record { return new(SetWatches2Request) },
	func() Record { return new(MultiRequest) },
	func() Record { return new(MultiResponse) },
	func() Record { return new(MultiHeader) },
	func() Record { return new(PathResponse) },
	func() Record { return new(NullPathResponse) },
	func() Record { return new(PathStatResponse) },
	func() Record { return new(StatResponse) },
	func() Record { return new(DataResponse) },
	func() Record { return new(ACLResponse) },
	func() Record { return new(ChildrenResponse) },
	func() Record { return new(ChildrenStatResponse) },
	func() Record { return new(EphemeralsResponse) },
	func() Record { return new(CountResponse) },
	func() Record { return new(ErrorResponse) },
	func() Record { return new(ClientInfo) },
	func() Record { return new(WhoAmIResponse) },
	func() Record { return new(SASLResponse) },
	func() Record { return new(WatcherEvent) },
	func() Record { return new(Stat) },
	func() Record { return new(StatPersisted) },
	func() Record { return new(DataNode) },
	func() Record { return new(ID) },
	func() Record { return new(ACL) },
	func() Record { return new(TxnHeader) },
	func() Record { return new(TxnDigest) },
	func() Record { return new(Txn) },
	func() Record { return new(CreateTxn) },
	func() Record { return new(CreateContainerTxn) },
	func() Record { return new(CreateTTLTxn) },
	func() Record { return new(DeleteTxn) },
	func() Record { return new(SetDataTxn) },
	func() Record { return new(SetACLTxn) },
	func() Record { return new(CheckTxn) },
	func() Record { return new(ErrorTxn) },
	func() Record { return new(CreateSessionTxn) },
	func() Record { return new(CloseSessionTxn) },
	func() Record { return new(MultiTxn) },
	func() Record { return new(SubTxn) },
	func() Record { return new(Code) },
	func() Record { return new(OpCode) },
	func() Record { return new(Zxid) },
	func() Record { return new(Epoch) },
	func() Record { return new(ServerID) },
	func() Record { return new(SessionID) },
	func() Record { return new(QuorumPacket) },
	func() Record { return new(LearnerInfo) },
	func() Record { return new(LeaderInfo) },
	func() Record { return new(EpochAck) },
	func() Record { return new(ForwardedRequest) },
	func() Record { return new(Revalidation) },
	func() Record { return new(Revalidated) },
	func() Record { return new(TouchedSession) },
	func() Record { return new(TouchedSessions) },
	func() Record { return new(Activation) },
	func() Record { return new(HandOver) },
	func() Record { return new(Notification) },
	func() Record { return new(InitialMessage) },
	func() Record { return new(QuorumAuthPacket) },
	func() Record { return new(Extension) },
	func() Record { return new(PingInfo) },
}

// nameOf is a record's type without its package.
func nameOf(r Record) string { return reflect.TypeOf(r).Elem().Name() }

// kindOf is a record's number in records.
func kindOf(t testing.TB, r Record) byte {
	for i, make := range records {
		if nameOf(make()) == nameOf(r) {
			return byte(i)
		}
	}
	t.Fatalf("%T is not in the list of records", r)
	return 0
}

// TestEveryRecordIsListed: what has a method Code is tested and fuzzed here.
func TestEveryRecordIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, make := range records {
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
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Code" {
				continue
			}
			found++
			receiver := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
			if !listed[receiver] {
				t.Errorf("%s: record %s is not listed", e.Name(), receiver)
			}
		}
	}
	if found != len(records) {
		t.Errorf("%d records in the source, %d listed", found, len(records))
	}
}

// checkRecord holds every rule of decoding to the record that make makes
// and the input b: it does not panic; it stays within its budget; canonical
// input encodes to itself, and other input does not; what it encodes to
// decodes to the same values; and a stream gives what memory gives.
func checkRecord(t *testing.T, make func() Record, b []byte) {
	t.Helper()
	var first Record
	var c Coder
	checkAllocated(t, allocBudget(len(b)), func() {
		first, c = make(), Decoder(b)
		first.Code(&c)
	})
	if c.Err() != nil {
		if strings.Contains(c.Err().Error(), "offset -") {
			t.Errorf("%T: error %v", first, c.Err())
		}
		return
	}
	encoded := Append(nil, first)
	if same := bytes.Equal(encoded, b[:c.Offset()]); same != c.Canonical() {
		t.Errorf("%T: canonical %v, but\n%x encodes to\n%x", first, c.Canonical(), b[:c.Offset()], encoded)
	}
	second := make()
	decodeWhole(t, encoded, second)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("%T: %+v encodes to what decodes to %+v", first, first, second)
	}
	checkStream(t, make(), first, b, &c)
}

// checkStream decodes b into again from a stream and compares with what came
// from memory by way of c.
func checkStream(t *testing.T, again, first Record, b []byte, c *Coder) {
	t.Helper()
	if endsWithInput(first) {
		return
	}
	r := bufio.NewReaderSize(bytes.NewReader(b), 16)
	if err := ReadRecord(r, again, len(b)); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("%T from a stream: %+v, error %v, want %+v", first, again, err, first)
	}
	if rest := restOf(t, r); !bytes.Equal(rest, b[c.Offset():]) {
		t.Errorf("%T: the stream goes on with %x, want %x", first, rest, b[c.Offset():])
	}
}

// endsWithInput reports whether a record has no end of its own.
func endsWithInput(r Record) bool {
	switch r.(type) {
	case *Txn, *ForwardedRequest, *Activation, *TouchedSessions, *Notification, *LearnerInfo:
		return true
	}
	return false
}

func restOf(t testing.TB, r *bufio.Reader) []byte {
	t.Helper()
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return rest.Bytes()
}

// TestGreedyInputStaysWithinItsBudget: the inputs that make a decoder
// allocate the most for their length, each for every record.
func TestGreedyInputStaysWithinItsBudget(t *testing.T) {
	const size = 64 << 10
	repeat := func(head, unit string) []byte {
		b := bytesOf(t, head)
		return append(b, bytes.Repeat(bytesOf(t, unit), (size-len(b))/(len(strings.ReplaceAll(unit, " ", ""))/2))...)
	}
	const zxid, anyHeader = "0000000000000001 ", "0100000ed48f0000 00000001 0000000000000001 0000000000000001 "
	inputs := map[string][]byte{
		"zeros":                        make([]byte, size),
		"a count of empty strings":     repeat("00003ff0", "00000000"),
		"a count beyond the input":     repeat(maxInt, "00000000"),
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
		"a packet of empty identities": repeat("00000001"+zxid+null+"00001ff0", "00000000 00000000"),
		"malformed text":               repeat("0000fff0", "80"),
		"addresses of no length":       repeat("ffffffffffff0001 0000000000000001 000007f0", "7c"),
	}
	for name, b := range inputs {
		t.Run(name, func(t *testing.T) {
			for _, make := range records {
				checkAllocated(t, allocBudget(len(b)), func() {
					c := Decoder(b)
					make().Code(&c)
				})
				checkAllocated(t, allocBudget(len(b))+2*readStep, func() {
					ReadRecord(bufio.NewReaderSize(bytes.NewReader(b), 16), make(), len(b))
				})
			}
		})
	}
}
