package wire

// streamRoom is the largest number of elements of a vector for which a decoder of a stream
// allocates memory before they have arrived.
const streamRoom = 16

// beginVector encodes or decodes the count of a vector and returns how many elements must be coded. A
// nil vector is null. least is the smallest number of bytes that an element takes, so that a count
// cannot make a decoder allocate more than the input justifies. A negative count other than -1 reads
// as empty, as in ZooKeeper.
func beginVector[T any](c *Coder, v *[]T, least int) int {
	if !c.decoding {
		if *v == nil {
			return c.length(-1)
		}
		return c.length(len(*v))
	}
	*v = nil
	n := c.length(0)
	if n == -1 || c.err != nil {
		return 0
	}
	if n < 0 {
		c.lossy = true
		n = 0
	}
	if n > c.Left()/least {
		c.Fail(4, ErrLength)
		return 0
	}
	if c.src != nil {
		*v = make([]T, 0, min(n, streamRoom))
	} else {
		*v = make([]T, n)
	}
	return n
}

// nextElement reports whether element i of n must be coded, and makes sure that (*v)[i]
// exists.
func nextElement[T any](c *Coder, v *[]T, i, n int) bool {
	if i >= n || c.err != nil {
		return false
	}
	if i == len(*v) {
		var zero T
		*v = push(*v, zero)
	}
	return true
}

// push appends e to v. If v must grow, push doubles its capacity and no more, so that all
// memory ever allocated for v is at most four times that of its elements.
func push[T any](v []T, e T) []T {
	if len(v) == cap(v) {
		bigger := make([]T, len(v), max(2*len(v), 4))
		copy(bigger, v)
		v = bigger
	}
	return append(v, e)
}

// Vector encodes or decodes a vector of records. least is the smallest number of bytes that a
// record takes.
func Vector[T any, P interface {
	*T
	Record
}](c *Coder, v *[]T, least int) {
	n := beginVector(c, v, least)
	for i := 0; nextElement(c, v, i, n); i++ {
		P(&(*v)[i]).Code(c)
	}
}

// Strings encodes or decodes a vector of strings.
func (c *Coder) Strings(v *[]string) {
	n := beginVector(c, v, 4)
	for i := 0; nextElement(c, v, i, n); i++ {
		c.String(&(*v)[i])
	}
}

// stringsNotNull encodes or decodes a vector that ZooKeeper refuses when it is null; an encoder
// writes a nil slice as an empty vector.
func (c *Coder) stringsNotNull(v *[]string) {
	if !c.decoding && *v == nil {
		c.length(0)
		return
	}
	c.Strings(v)
	if c.decoding && *v == nil {
		c.fail(ErrNull)
	}
}

// ACLs encodes or decodes an access-control list.
func (c *Coder) ACLs(v *[]ACL) {
	n := beginVector(c, v, 12)
	for i := 0; nextElement(c, v, i, n); i++ {
		(*v)[i].Code(c)
	}
}

// IDs encodes or decodes a list of identities.
func (c *Coder) IDs(v *[]ID) {
	n := beginVector(c, v, 8)
	for i := 0; nextElement(c, v, i, n); i++ {
		(*v)[i].Code(c)
	}
}
