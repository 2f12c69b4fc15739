package audit

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"bellwether/wire"
)

// Result is how an operation ended.
type Result string

// The results that ZooKeeper's audit log knows.
const (
	Success Result = "success"
	Failure Result = "failure"
	Invoked Result = "invoked" // for OpStop: the server was told to stop
)

// The operations of ZooKeeper's audit log.
const (
	OpStart     = "serverStart"
	OpStop      = "serverStop"
	OpCreate    = "create"
	OpDelete    = "delete"
	OpSetData   = "setData"
	OpSetACL    = "setAcl"
	OpMulti     = "multiOperation" // a multi that failed; one that succeeded is recorded by its parts
	OpReconfig  = "reconfig"
	OpEphemeral = "ephemeralZNodeDeletionOnSessionCloseOrExpire"
)

// opLost is Bellwether's own operation: records were lost before this one.
const opLost = "auditRecordsLost"

// Record is one entry of the audit log. An empty field is left out.
type Record struct {
	Session   wire.SessionID // 0 for none
	User      string         // who did it; several names are separated by commas
	IP        string         // address of the client
	Operation string
	Znode     string // its path
	ZnodeType string // see [ZnodeType]; for OpCreate only
	ACL       string // see [ACL]; for OpSetACL only
	Result    Result

	lost int // for opLost: how many records
}

// field is one key of a record with its value.
type field struct{ key, value string }

// fields returns the fields in the order of ZooKeeper's audit log.
func (r *Record) fields() [9]field {
	var session, lost string
	if r.Session != 0 {
		session = r.Session.String()
	}
	if r.lost != 0 {
		lost = strconv.Itoa(r.lost)
	}
	return [...]field{{"session", session}, {"user", r.User}, {"ip", r.IP}, {"operation", r.Operation}, {"znode", r.Znode},
		{"znode_type", r.ZnodeType}, {"acl", r.ACL}, {"lost", lost}, {"result", string(r.Result)}}
}

// AppendText appends the record as ZooKeeper's AuditEvent prints it: key=value, separated
// by tabs. Unlike ZooKeeper it escapes control characters and bytes that are not UTF-8 as
// Go does ("\n", "\x07"): a name chosen by a client must not begin a line of its own.
func (r *Record) AppendText(b []byte) []byte {
	first := true
	for _, f := range r.fields() {
		if f.value == "" {
			continue
		}
		if !first {
			b = append(b, '\t')
		}
		first = false
		b = append(b, f.key...)
		b = append(b, '=')
		b = appendEscaped(b, f.value)
	}
	return b
}

// appendEscaped appends s with its control characters escaped.
func appendEscaped(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && n == 1, c < ' ', c >= 0x7f && c < 0xa0, c == '\u2028', c == '\u2029':
			quoted := strconv.QuoteToASCII(s[i : i+n])
			b = append(b, quoted[1:len(quoted)-1]...)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return b
}

// AppendJSON appends the record as a JSON object of strings, with the keys of the text.
func (r *Record) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for _, f := range r.fields() {
		if f.value == "" {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			panic(err) // a string can always be marshalled
		}
		b = append(b, '"')
		b = append(b, f.key...)
		b = append(b, `":`...)
		b = append(b, value...)
	}
	return append(b, '}')
}

// ZnodeType returns the value of znode_type for the flags of a create request, or "" if
// they are not valid.
func ZnodeType(flags int32) string {
	switch flags {
	case wire.FlagPersistent:
		return "persistent"
	case wire.FlagEphemeral:
		return "ephemeral"
	case wire.FlagPersistentSequential:
		return "persistent_sequential"
	case wire.FlagEphemeralSequential:
		return "ephemeral_sequential"
	case wire.FlagContainer:
		return "container"
	case wire.FlagPersistentTTL:
		return "persistent_with_ttl"
	case wire.FlagPersistentSequentialTTL:
		return "persistent_sequential_with_ttl"
	}
	return ""
}

// ACL returns the value of acl: scheme:id:permissions of each entry. As in ZooKeeper,
// nothing separates two entries.
func ACL(acl []wire.ACL) string {
	var b []byte
	for _, a := range acl {
		b = append(b, a.ID.Scheme...)
		b = append(b, ':')
		b = append(b, a.ID.ID...)
		b = append(b, ':')
		for _, p := range []struct {
			bit    int32
			letter byte
		}{{wire.PermCreate, 'c'}, {wire.PermDelete, 'd'}, {wire.PermRead, 'r'}, {wire.PermWrite, 'w'}, {wire.PermAdmin, 'a'}} {
			if a.Perms&p.bit != 0 {
				b = append(b, p.letter)
			}
		}
	}
	return string(b)
}
