package facts

import (
	"fmt"
	"time"
)

// Lasting writes a length of time for people: seconds, then minutes, hours, days.
func Lasting(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0f s", s)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	default:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
}
