package bench

import (
	"encoding/binary"
	"strconv"

	"bellwether/wire"
	"bellwether/zk"
)

// requests encodes the requests of a load. Loops share it, and change nothing.
type requests struct {
	load *Load
	root string // with the chroot
	data []byte
	// gets and sets are the requests for each key, except for their xids; nil: there are too
	// many, and they are encoded when they are sent.
	gets, sets [][]byte
}

// encodedMax is how many bytes of requests are encoded in advance.
const encodedMax = 32 << 20

func newRequests(l *Load) *requests {
	r := &requests{load: l, root: l.Raw.Chroot + l.Root, data: make([]byte, l.Size)}
	if l.Kind == Create || l.Kind == Ephemerals || l.Kind == List || l.Keys*(len(r.get(nil, 0, 0))+len(r.set(nil, 0, 0))) > encodedMax {
		return r
	}
	gets, sets := make([][]byte, l.Keys), make([][]byte, l.Keys)
	for i := range l.Keys {
		gets[i], sets[i] = r.get(nil, 0, i), r.set(nil, 0, i)
	}
	r.gets, r.sets = gets, sets
	return r
}

// begin appends the first request of operation number n to b. It returns which part of the
// operation the request is, and whether another request follows.
func (r *requests) begin(b []byte, xid int32, id, n int) (out []byte, part int8, first bool) {
	i := n % r.load.Keys
	if r.load.Filled {
		i = scattered(n, r.load.Keys)
	}
	switch r.load.Kind {
	case List:
		return wire.AppendFrame(b, &wire.RequestHeader{Xid: xid, Op: wire.OpGetChildren}, &wire.PathWatchRequest{Path: r.root}), -1, false
	case Write:
		return r.set(b, xid, i), -1, false
	case Create:
		return r.create(b, xid, r.root+createdPath(id, n), 0), -1, false
	case Ephemerals:
		return r.create(b, xid, r.root+bidPath, zk.Ephemeral|zk.Sequential), 0, true
	case Mixed:
		if readsAt(n, r.load.Reads) {
			return r.get(b, xid, i), 0, false
		}
		return r.set(b, xid, i), 1, false
	}
	return r.get(b, xid, i), -1, false
}

// scatterFactor is a prime, so that no number of keys but its multiples has a divisor in common with it.
const scatterFactor = 2_654_435_761

// scattered returns a key for operation n, so that operations that follow each other use keys that are far from each
// other, and all keys are used equally often.
func scattered(n, keys int) int { return int(uint64(n) * scatterFactor % uint64(keys)) }

// end appends the second request of an operation, which deletes the znode that the first one
// has created. body is the reply to the first one.
func (r *requests) end(b []byte, xid int32, body []byte) ([]byte, error) {
	var created wire.PathResponse
	if err := wire.Decode(body, &created); err != nil {
		return b, err
	}
	return wire.AppendFrame(b, &wire.RequestHeader{Xid: xid, Op: wire.OpDelete}, &wire.PathVersionRequest{Path: created.Path, Version: zk.AnyVersion}), nil
}

func (r *requests) get(b []byte, xid int32, key int) []byte {
	if r.gets != nil {
		return appendWith(b, r.gets[key], xid)
	}
	return wire.AppendFrame(b, &wire.RequestHeader{Xid: xid, Op: wire.OpGetData}, &wire.PathWatchRequest{Path: r.path(key)})
}

func (r *requests) set(b []byte, xid int32, key int) []byte {
	if r.sets != nil {
		return appendWith(b, r.sets[key], xid)
	}
	return wire.AppendFrame(b, &wire.RequestHeader{Xid: xid, Op: wire.OpSetData}, &wire.SetDataRequest{Path: r.path(key), Data: r.data, Version: zk.AnyVersion})
}

func (r *requests) create(b []byte, xid int32, path string, mode zk.Mode) []byte {
	return wire.AppendFrame(b, &wire.RequestHeader{Xid: xid, Op: wire.OpCreate},
		&wire.CreateRequest{Path: path, Data: r.data, ACL: openACL, Flags: int32(mode)})
}

var openACL = wire.OpenACL()

func (r *requests) path(i int) string { return key(r.root, i) }

// appendWith appends an encoded request with another xid, which is what follows the length.
func appendWith(b, request []byte, xid int32) []byte {
	at := len(b) + lengthSize
	b = append(b, request...)
	binary.BigEndian.PutUint32(b[at:], uint32(xid))
	return b
}

// createdPath returns the path, below the root, of the znode that operation n of a worker or line
// creates with [Create].
func createdPath(id, n int) string {
	return "/" + strconv.Itoa(n%shards) + "/" + strconv.Itoa(id) + "-" + strconv.Itoa(n)
}

// bidPath is the path, below the root, of the sequential znodes of [Ephemerals].
const bidPath = "/bid-"

// mixStride spreads the reads and writes of a mixed load: it and 100 have no common divisor.
const mixStride = 61

// readsAt reports whether operation n of [Mixed] is a read if so many of 100 are.
func readsAt(n, reads int) bool { return n*mixStride%100 < reads }
