package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Limits of the snapshot decoder.
const (
	snapshotElementMax = 64 << 20 // bytes of one path or one znode's data
	aclEntriesMax      = 1 << 20  // entries of one ACL
)

// snapshotReadMin is how much of a snapshot is read at first, in bytes.
const snapshotReadMin = 4096

// UnsoundError says why a snapshot cannot be used, and where the error is.
type UnsoundError struct {
	Offset int64 // offset in the uncompressed stream
	What   string
	Short  bool // the snapshot ends too early, as if its writer was interrupted
	Err    error

	misnamed bool      // the snapshot is complete, but does not contain what its name says
	reaches  wire.Zxid // only for a misnamed snapshot: the last transaction whose effects it contains
}

func (e *UnsoundError) Error() string {
	if e.misnamed {
		return "the snapshot has a wrong name: " + e.What
	}
	if e.Err != nil {
		return fmt.Sprintf("snapshot at offset %d: %s: %v", e.Offset, e.What, e.Err)
	}
	return fmt.Sprintf("snapshot at offset %d: %s", e.Offset, e.What)
}

func (e *UnsoundError) Unwrap() error { return e.Err }

// Offsetter is what a Sink may implement in addition: At is called before each part with
// the offset at which it begins in the uncompressed stream.
type Offsetter interface{ At(off int64) }

// DecodeSnapshot reads the stream of a plain snapshot file named after zxid into sink,
// including the call of SnapshotDone, and verifies every seal. An error is an
// [*UnsoundError]; sink has then received a part of the snapshot. Bytes after the end are
// not decoded, but may have been read from r.
func DecodeSnapshot(r io.Reader, zxid wire.Zxid, sink Sink) (*SnapshotDigest, error) {
	c, err := decodeSnapshot(r, zxid, sink)
	return c.digest, err
}

// DecodeUnnamed is DecodeSnapshot for a stream whose file name is not known. It returns the
// last transaction of which the snapshot shows an effect. The stream must have the last block
// of a snapshot, because otherwise it may have been cut off after another part.
func DecodeUnnamed(r io.Reader, sink Sink) (reaches wire.Zxid, err error) {
	c, err := decodeSnapshot(r, unnamed, sink)
	if err == nil && c.finished < 0 {
		return 0, &UnsoundError{What: "it has no block with the last processed zxid, which servers write if serializeLastProcessedZxid.enabled is true"}
	}
	return c.reaches(), err
}

// unnamed stands for the zxid in the file name of a snapshot that has no such name.
const unnamed wire.Zxid = -1

// decodeSnapshot is DecodeSnapshot, but returns all that the snapshot says about itself.
func decodeSnapshot(r io.Reader, zxid wire.Zxid, sink Sink) (contents, error) {
	d := snapshotDecoder{r: r, sink: sink, sum: adler32.New(), buf: make([]byte, 0, snapshotReadMin)}
	d.at, _ = sink.(Offsetter)
	d.found.finished = -1
	d.header()
	d.body()
	d.trailer()
	if zxid == unnamed {
		zxid = max(d.found.reaches(), 0)
	}
	if d.err == nil {
		if err := sink.SnapshotDone(zxid, d.found.digest); err != nil {
			d.fail("the tree refuses it", err)
		}
	}
	if d.err != nil {
		return contents{}, d.err
	}
	return d.found, nil
}

// snapshotDecoder reads a stream through buf and computes its checksum. The first error
// is kept, and all values decoded after it are zero.
type snapshotDecoder struct {
	r      io.Reader
	exact  bool // do not read beyond the end of the snapshot
	sink   Sink
	at     Offsetter
	buf    []byte
	next   int   // index in buf of the end of the consumed bytes
	summed int   // index in buf of the end of the bytes in the checksum
	pos    int64 // offset of next in the stream
	sum    hash.Hash32
	err    *UnsoundError
	c      wire.Coder
	found  contents
}

func (d *snapshotDecoder) fail(what string, err error) {
	if d.err == nil {
		d.err = &UnsoundError{Offset: d.pos, What: what, Short: errors.Is(err, io.ErrUnexpectedEOF), Err: err}
	}
}

// updateSum adds the consumed bytes to the checksum.
func (d *snapshotDecoder) updateSum() {
	d.sum.Write(d.buf[d.summed:d.next])
	d.summed = d.next
}

// peek returns the next n bytes of the stream; fewer if the stream ends. The buffer grows
// only as bytes arrive.
func (d *snapshotDecoder) peek(n int) []byte {
	for len(d.buf)-d.next < n && d.err == nil {
		if d.next > 0 {
			d.updateSum()
			d.buf = d.buf[:copy(d.buf, d.buf[d.next:])]
			d.next, d.summed = 0, 0
		}
		if len(d.buf) == cap(d.buf) || cap(d.buf) < snapshotBufferLen {
			d.buf = append(make([]byte, 0, 2*cap(d.buf)), d.buf...)
		}
		upTo := cap(d.buf)
		if d.exact {
			upTo = min(upTo, d.next+n)
		}
		got, err := d.r.Read(d.buf[len(d.buf):upTo])
		d.buf = d.buf[:len(d.buf)+got]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			d.fail("it cannot be read", err)
		}
	}
	return d.buf[d.next:min(len(d.buf), d.next+n)]
}

// take consumes n bytes and returns them; nil after an error. They are valid until the
// next call.
func (d *snapshotDecoder) take(n int) []byte {
	b := d.peek(n)
	if len(b) < n {
		d.fail("it ends too early", io.ErrUnexpectedEOF)
	}
	if d.err != nil {
		return nil
	}
	d.next += n
	d.pos += int64(n)
	return b
}

func (d *snapshotDecoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *snapshotDecoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// length reads the length of a string or buffer.
func (d *snapshotDecoder) length(what string) (n int, null bool) {
	switch n := d.int32(); {
	case n == -1:
		return 0, true
	case n < 0 || n > snapshotElementMax:
		d.pos -= 4
		d.fail(fmt.Sprintf("unreasonable length %d of %s", n, what), nil)
		return 0, false
	default:
		return int(n), false
	}
}

func (d *snapshotDecoder) text(what string) string {
	n, null := d.length(what)
	if null {
		d.fail(what+" is null", nil)
	}
	return string(d.take(n))
}

// count reads the number of elements that follow; each element takes at least one byte.
func (d *snapshotDecoder) count(what string) int {
	n := d.int32()
	if n < 0 {
		d.pos -= 4
		d.fail(fmt.Sprintf("unreasonable count %d of %s", n, what), nil)
	}
	return int(n)
}

// part tells the sink how many bytes of the snapshot are read, if the sink is an Offsetter.
func (d *snapshotDecoder) part() {
	if d.at != nil && d.err == nil {
		d.at.At(d.pos)
	}
}

// body reads the part that files and streams have in common.
func (d *snapshotDecoder) body() {
	d.sessions()
	d.acls()
	d.nodes()
}

func (d *snapshotDecoder) header() {
	b := d.take(snapshotHeaderLen)
	if b != nil && string(b[:4]) != snapshotMagic {
		d.pos = 0
		d.fail("it does not begin with "+snapshotMagic, nil)
	}
}

func (d *snapshotDecoder) sessions() {
	for n := d.count("sessions"); n > 0 && d.err == nil; n-- {
		d.part()
		id, timeout := wire.SessionID(d.int64()), d.int32()
		if d.err == nil {
			d.refused(d.sink.Session(id, timeout))
		}
	}
}

func (d *snapshotDecoder) acls() {
	for n := d.count("ACLs"); n > 0 && d.err == nil; n-- {
		d.part()
		key, acl := d.int64(), d.acl()
		if d.err == nil {
			d.refused(d.sink.ACL(key, acl))
		}
	}
}

// acl reads one ACL; its memory grows with its entries.
func (d *snapshotDecoder) acl() []wire.ACL {
	n := d.int32()
	if n == -1 || d.err != nil {
		return nil
	}
	if n < 0 || n > aclEntriesMax {
		d.pos -= 4
		d.fail(fmt.Sprintf("unreasonable count %d of ACL entries", n), nil)
		return nil
	}
	acl := make([]wire.ACL, 0, min(n, 16))
	for ; n > 0 && d.err == nil; n-- {
		a := wire.ACL{Perms: d.int32()}
		a.ID.Scheme = d.text("an ACL's scheme")
		a.ID.ID = d.text("an ACL's id")
		acl = append(acl, a)
	}
	return acl
}

// nodeRestLen is the length of what follows the data of a record.DataNode, the key of its ACL and its stat, in bytes.
const nodeRestLen = 8 + 60

func (d *snapshotDecoder) nodes() {
	var n record.DataNode
	for first := true; d.err == nil; first = false {
		d.part()
		path := d.text("a path")
		if path == nodesEnd {
			if first {
				d.fail("it has no root", nil)
			}
			return
		}
		if (path == "") != first && d.err == nil {
			d.fail(fmt.Sprintf("path %q does not follow its parent", path), nil)
		}
		size, null := d.length("a znode's data")
		if b := d.take(size + nodeRestLen); b != nil {
			if n.Data = b[:size:size]; null {
				n.Data = nil
			}
			d.c = wire.Decoder(b[size:])
			d.c.Int64(&n.ACL)
			n.Stat.Code(&d.c)
			d.found.node(path, &n.Stat)
			d.refused(d.sink.Node(path, &n))
		}
	}
}

func (d *snapshotDecoder) refused(err error) {
	if err != nil {
		d.fail("the tree refuses it", err)
	}
}

// Lengths of the optional parts after the first seal, each including the seal after it.
const (
	digestBlockLen   = 20 + sealLen
	lastZxidBlockLen = 8 + sealLen
)

// trailer reads the seals and the blocks between them. A file may end after any seal. The
// part after the second seal may be cut off.
func (d *snapshotDecoder) trailer() {
	d.seal()
	if n := len(d.peek(digestBlockLen)); n > 0 && n != lastZxidBlockLen {
		d.part()
		d.found.digest = d.digest()
		d.seal()
	}
	if len(d.peek(lastZxidBlockLen)) == lastZxidBlockLen {
		d.part()
		d.found.finished = wire.Zxid(d.int64())
		d.seal()
	}
}

// digest reads the digest block. It returns nil if the block has an older version, and zxid 0 if the snapshot came
// from a leader.
func (d *snapshotDecoder) digest() *SnapshotDigest {
	digest := &SnapshotDigest{Zxid: wire.Zxid(d.int64()), Version: d.int32()}
	if digest.Version < record.DigestVersion && d.err == nil {
		d.text("an old digest")
		return nil
	}
	if digest.Tree = uint64(d.int64()); ofNoTxn(digest) {
		digest.Zxid = 0
	}
	return digest
}

// seal reads a seal and compares its checksum.
func (d *snapshotDecoder) seal() {
	d.updateSum()
	want, at := d.sum.Sum32(), d.pos
	got := d.int64()
	mark := d.text("a seal")
	if d.err == nil && (got != int64(want) || mark != nodesEnd) {
		d.pos = at
		d.fail(fmt.Sprintf("checksum up to here is %08x, its seal says %08x", want, got), nil)
	}
}
