package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
)

// The snappy form of a snapshot is the container of xerial's stream, not the
// framing of the snappy project: a header of 16 bytes, then blocks, each an
// int with the compressed length and a raw snappy block.
const (
	xerialMagic    = "\x82SNAPPY\x00"
	xerialVersions = "\x00\x00\x00\x01\x00\x00\x00\x01" // version of the stream, and the smallest version that can read it
	xerialBlockLen = 32 << 10                           // bytes of input in a block
	xerialBlockMax = 1 << 20                            // largest size of a block that is read, compressed or not
)

// compressTo returns a writer that compresses into w; its Close ends the
// stream but not w.
func compressTo(w io.Writer, form Compression) io.WriteCloser {
	switch form {
	case Gzip:
		return gzip.NewWriter(w)
	case Snappy:
		return &xerialWriter{w: w}
	}
	return plainWriter{w}
}

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }

// decompress returns the plain stream of r.
func decompress(r io.Reader, form Compression) (io.Reader, error) {
	switch form {
	case Gzip:
		return gzip.NewReader(r)
	case Snappy:
		return newXerialReader(r)
	}
	return r, nil
}

type xerialWriter struct {
	w       io.Writer
	started bool
	in      []byte
	out     []byte
}

func (x *xerialWriter) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		n := min(len(b), xerialBlockLen-len(x.in))
		x.in = append(x.in, b[:n]...)
		b = b[n:]
		if len(x.in) == xerialBlockLen {
			if err := x.block(); err != nil {
				return total - len(b), err
			}
		}
	}
	return total, nil
}

// block compresses and writes the collected input, after the header if it is the first
// block.
func (x *xerialWriter) block() error {
	if !x.started {
		x.started = true
		if _, err := io.WriteString(x.w, xerialMagic+xerialVersions); err != nil {
			return err
		}
	}
	if len(x.in) == 0 {
		return nil
	}
	if x.out == nil {
		x.out = make([]byte, 4+snappy.MaxEncodedLen(xerialBlockLen))
	}
	body := snappy.Encode(x.out[4:], x.in)
	binary.BigEndian.PutUint32(x.out, uint32(len(body)))
	x.in = x.in[:0]
	_, err := x.w.Write(x.out[:4+len(body)])
	return err
}

func (x *xerialWriter) Close() error { return x.block() }

type xerialReader struct {
	r     io.Reader
	block []byte // compressed
	plain []byte
	rest  []byte // the part of plain that Read has not returned yet
}

func newXerialReader(r io.Reader) (*xerialReader, error) {
	var head [len(xerialMagic) + len(xerialVersions)]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if string(head[:len(xerialMagic)]) != xerialMagic {
		return nil, errors.New("the file does not begin as a snappy stream of ZooKeeper does")
	}
	return &xerialReader{r: r}, nil
}

func (x *xerialReader) Read(b []byte) (int, error) {
	for len(x.rest) == 0 {
		if err := x.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, x.rest)
	x.rest = x.rest[n:]
	return n, nil
}

// next reads one block.
func (x *xerialReader) next() error {
	var head [4]byte
	if _, err := io.ReadFull(x.r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > xerialBlockMax {
		return fmt.Errorf("unreasonable length %d of a snappy block", n)
	}
	if uint32(cap(x.block)) < n {
		x.block = make([]byte, n)
	}
	x.block = x.block[:n]
	if _, err := io.ReadFull(x.r, x.block); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if size, err := snappy.DecodedLen(x.block); err != nil || size > xerialBlockMax {
		return fmt.Errorf("snappy block of %d bytes: %w", size, errors.Join(err, snappy.ErrCorrupt))
	}
	var err error
	x.plain, err = snappy.Decode(x.plain[:cap(x.plain)], x.block)
	x.rest = x.plain
	return err
}
