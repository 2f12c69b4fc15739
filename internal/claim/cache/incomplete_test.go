package cache

import "testing"

// TestOneReadMissing checks that a Cache is not current while one read is missing that it needs for that, whether
// the read waits or is under way.
func TestOneReadMissing(t *testing.T) {
	c := &Cache{}
	c.todo.add("/a", readData)
	if c.incomplete() {
		t.Error("a read that is not required is waited for")
	}
	c.todo.add("/b", readData|required)
	if !c.incomplete() {
		t.Error("the read of /b has not begun")
	}
	c.inFlight = append(c.inFlight, c.todo.take(2)...)
	if !c.incomplete() {
		t.Error("the read of /b is under way")
	}
}
