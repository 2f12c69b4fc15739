package store

import (
	"bufio"
	"fmt"
	"hash/adler32"
	"io"

	"bellwether/wire"
)

// streamEnd is the string that ends a snapshot which one server sends to another. Such a
// stream is the middle part of a snapshot file (sessions, ACLs, nodes, the string "/"),
// without header and seals, followed by streamEnd.
const streamEnd = "BenWasHere"

// EncodeStream writes src to w in the form in which a leader sends it after a SNAP
// packet.
func EncodeStream(w io.Writer, src Source) error {
	e := snapshotEncoder{w: w, sum: adler32.New()}
	if err := e.body(src); err != nil {
		return err
	}
	e.text(streamEnd)
	e.flush()
	return e.err
}

// DecodeStream reads the snapshot that follows a SNAP packet with this zxid into sink,
// including the call of SnapshotDone, and not a byte more. An error is an
// [*UnsoundError]; sink has then received a part of the snapshot.
func DecodeStream(r *bufio.Reader, zxid wire.Zxid, sink Sink) error {
	d := snapshotDecoder{r: r, exact: true, sink: sink, sum: adler32.New(), buf: make([]byte, 0, snapshotReadMin)}
	d.body()
	if end := d.text("the signature"); d.err == nil && end != streamEnd {
		d.fail(fmt.Sprintf("it ends with %q instead of %q", end, streamEnd), nil)
	}
	if d.err == nil {
		if err := sink.SnapshotDone(zxid, nil); err != nil {
			d.fail("the tree refuses it", err)
		}
	}
	if d.err != nil {
		return d.err
	}
	return nil
}
