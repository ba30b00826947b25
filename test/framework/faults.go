// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// AllFaults reports whether FAULTS=all is set, so that all faults are injected instead of the
// subset that runs by default.
func AllFaults() bool { return os.Getenv("FAULTS") == "all" }

// checkFaults rejects any value of FAULTS except "all" and "", because it would silently run only
// the subset.
func checkFaults() error {
	if value := os.Getenv("FAULTS"); value != "" && !AllFaults() {
		return fmt.Errorf("FAULTS=%q: must be all, or not given", value)
	}
	return nil
}

// Shard returns the value of SHARD, such as 2/8, which selects the part of all faults to inject on
// this machine. The syntax is the same as in sandbox explore and sandbox fuzz. An empty value
// selects all faults.
func Shard() string { return os.Getenv("SHARD") }

// InShard skips a test that belongs to another shard. A test's shard is derived from the hash of
// its name.
func InShard(t testing.TB) {
	t.Helper()
	elsewhere, err := playedElsewhere(t.Name(), Shard())
	if err != nil {
		t.Fatal(err)
	}
	if elsewhere != "" {
		t.Skip(elsewhere)
	}
}

// playedElsewhere returns the skip message for a test that does not belong to the given shard, and
// "" for a test that does.
func playedElsewhere(name, shard string) (string, error) {
	if shard == "" {
		return "", nil
	}
	part, of, err := parseShard(shard)
	if err != nil {
		return "", err
	}
	if mine := partOf(name, of); mine != part {
		return fmt.Sprintf("SHARD=%d/%d plays it", mine, of), nil
	}
	return "", nil
}

// parseShard parses a shard such as 2/8 into its number and the total number of shards.
func parseShard(text string) (part, of int, err error) {
	if _, err := fmt.Sscanf(text, "%d/%d", &part, &of); err != nil || part < 1 || part > of || text != fmt.Sprintf("%d/%d", part, of) {
		return 0, 0, fmt.Errorf("SHARD=%q: want a part and how many there are, like 2/8", text)
	}
	return part, of, nil
}

// partOf returns a test's shard. It depends on the test's name alone, so that a new test does not
// move other tests to other shards.
func partOf(name string, of int) int {
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return int(sum.Sum32()%uint32(of)) + 1
}
