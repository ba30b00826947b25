// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// Limits on the output of a failed test, in lines: mostObjectLines per object that the test
// applied, and mostLogLines per process log.
const (
	mostObjectLines = 90
	mostLogLines    = 80
)

// explain describes an object's last state for a failed test: a heading such as "ScheduledRestart
// default/web as it was last:", the object's YAML and its events.
func (c *Cluster) explain(ctx context.Context, o client.Object) string {
	name := fmt.Sprintf("%T", o)
	if gvk, err := apiutil.GVKForObject(o, c.Scheme()); err == nil {
		name = gvk.Kind
	}
	name += " " + client.ObjectKeyFromObject(o).String()
	seen := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), seen); err != nil {
		return fmt.Sprintf("%s as it was last: %v", name, err)
	}
	seen.SetManagedFields(nil)
	text, err := yaml.Marshal(seen)
	if err != nil {
		return fmt.Sprintf("%s as it was last: %v", name, err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if more := len(lines) - mostObjectLines; more > 0 {
		lines = append(lines[:mostObjectLines], fmt.Sprintf("… %d lines more", more))
	}
	return fmt.Sprintf("%s as it was last:\n%s%s", name, strings.Join(lines, "\n"), c.eventsOf(ctx, seen))
}

// eventsOf returns an object's events as lines, the oldest first.
func (c *Cluster) eventsOf(ctx context.Context, o client.Object) string {
	var events corev1.EventList
	if err := c.List(ctx, &events, client.MatchingFields{"involvedObject.uid": string(o.GetUID())}); err != nil {
		return fmt.Sprintf("\nevents: %v", err)
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return cmp.Compare(a.ResourceVersion, b.ResourceVersion) })
	var b strings.Builder
	for _, e := range events.Items {
		count := 1
		if e.Series != nil {
			count = int(e.Series.Count)
		}
		fmt.Fprintf(&b, "\nevent %s, %s, %d times: %s", cmp.Or(e.EventTime.Time, e.LastTimestamp.Time).UTC().Format("15:04:05.000"), e.Reason, max(count, int(e.Count)), e.Message)
	}
	return b.String()
}

// explainLog returns the last lines of a process's log for a failed test, and the name of the file
// in bin/failed with the complete log.
func explainLog(t testing.TB, process, log string) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	before := len(lines) - mostLogLines
	if before <= 0 {
		return fmt.Sprintf("the log of the %s:\n%s", process, strings.TrimRight(log, "\n"))
	}
	where, err := keepLog(t.Name(), process, log)
	if err != nil {
		where = err.Error()
	}
	return fmt.Sprintf("the log of the %s, after %d lines that are in %s:\n%s", process, before, where, strings.Join(lines[before:], "\n"))
}

// keepLog writes a process's log to a file, and returns the file's path relative to the repository.
func keepLog(test, process, log string) (string, error) {
	dir := filepath.Join("bin", "failed", filepath.FromSlash(strings.ReplaceAll(test, "..", "_")))
	if err := os.MkdirAll(filepath.Join(Root(), dir), 0o755); err != nil {
		return "", err
	}
	// The file name is made unique because a test may run several managers.
	file, err := os.CreateTemp(filepath.Join(Root(), dir), strings.ReplaceAll(process, " ", "-")+"-*.log")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = file.WriteString(log)
	return filepath.Join(dir, filepath.Base(file.Name())), err
}
