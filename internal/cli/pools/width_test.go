// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// TestNumbersAreNeverCut checks that narrow terminals and long names neither cut percentages nor
// make a line wider than the screen.
func TestNumbersAreNeverCut(t *testing.T) {
	percent := func(cpu, memory, pods int32) func(*tidekeeperv1.NodePool) {
		return func(p *tidekeeperv1.NodePool) {
			p.Status.NodeCount, p.Status.ReadyNodes = 1000, 998
			p.Status.RequestedPercent = map[corev1.ResourceName]int32{"cpu": cpu, "memory": memory, "pods": pods}
		}
	}
	for _, names := range [][]string{{"worker", "oldpool"}, {"eu-west-1-general-purpose", "gpu"}, {"a-pool-whose-name-is-as-long-as-names-of-pools-may-be-here-50", "x"}} {
		items := []tidekeeperv1.NodePool{aPool(names[0], "Healthy", percent(14, 31, 1)), aPool(names[1], "RuntimeClassConflict", percent(100, 99, 98))}
		for _, width := range []int{60, 80, 100, 120} {
			for _, wide := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s at %d, wide %t", names[0], width, wide), func(t *testing.T) {
					shown := lines(t, listTable(items, wide, noon), term.Screen{Terminal: true, Width: width})
					for i, want := range []string{"", "998/1000 14% 31% 1%", "998/1000 100% 99% 98%"} {
						line := strings.NewReplacer("█", "", "▍", "", "▏", "", "▊", "", "▉", "", "·", "", "▎", "", "▋", "", "▌", "", "▋", "").Replace(shown[i])
						if line = strings.Join(strings.Fields(line), " "); !strings.Contains(line, want) {
							t.Errorf("no %q in %q", want, shown[i])
						}
						if n := term.DisplayWidth(shown[i]); n > width {
							t.Errorf("%d columns: %s", n, shown[i])
						}
					}
				})
			}
		}
	}
}

// TestBarsGoFirst checks that a narrow screen drops the bars first. Percentages have bars at 80
// columns with short names, and at 120 columns with long names.
func TestBarsGoFirst(t *testing.T) {
	pool := func(name string) []tidekeeperv1.NodePool {
		return []tidekeeperv1.NodePool{aPool(name, "Healthy", func(p *tidekeeperv1.NodePool) {
			p.Status.RequestedPercent = map[corev1.ResourceName]int32{"cpu": 50, "memory": 50, "pods": 50}
		})}
	}
	const long = "eu-west-1-general-purpose"
	for _, tt := range []struct {
		name       string
		width      int
		bar, whole bool // whether the row has a bar; whether it has the complete name and the column AGE
	}{
		{"gpu", 100, true, true}, {"gpu", 80, true, true}, {"gpu", 70, false, true}, {"gpu", 60, false, false},
		{long, 120, true, true}, {long, 100, true, true}, {long, 80, false, false}, {long, 60, false, false},
	} {
		shown := lines(t, listTable(pool(tt.name), false, noon), term.Screen{Terminal: true, Width: tt.width})
		bar, whole := strings.Contains(shown[1], "█"), strings.HasPrefix(shown[1], tt.name+" ") && strings.HasSuffix(shown[0], "AGE")
		if bar != tt.bar || whole != tt.whole {
			t.Errorf("%s at %d: bar %t, whole %t\n%s", tt.name, tt.width, bar, whole, strings.Join(shown, "\n"))
		}
	}
}
