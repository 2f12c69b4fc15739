package driver

import (
	"testing"

	"bellwether/internal/replica"
)

// TestEveryEpochIsSaved: a task with an epoch is no part of a group, so the epoch is saved at its place,
// although the tasks around it only append.
func TestEveryEpochIsSaved(t *testing.T) {
	for kind, set := range map[Kind]func(*replica.Duty){
		SaveAccepted: func(d *replica.Duty) { d.SaveAccepted = 5 },
		SaveCurrent:  func(d *replica.Duty) { d.SaveCurrent = 5 },
	} {
		var j Journal
		append1, with, append3 := task([]string{"generation=1", "append=1"}), task([]string{"generation=1", "append=2"}), task([]string{"generation=1", "append=3"})
		set(&with.Duty)
		for _, x := range []Task{append1, with, append3} {
			j.Push(x)
		}
		j.Take()
		var saved int
		for a := j.Next(); a.Kind != Idle; a = j.Next() {
			if a.Kind == kind && a.Epoch == 5 {
				saved++
			}
		}
		if saved != 1 {
			t.Errorf("%v: the epoch is saved %d times", kind, saved)
		}
	}
}
