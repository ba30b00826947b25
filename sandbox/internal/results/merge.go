// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// plannedFile has the part of the cases that is played in a directory.
const plannedFile = "planned.json"

// part is the part of the cases that is played in a directory: the Number-th of Parts, from 1 on,
// and 0 of 0 for all. IDs are its cases.
type part struct {
	Number int      `json:"part,omitempty"`
	Parts  int      `json:"parts,omitempty"`
	IDs    []string `json:"cases"`
	// Scope are the objects and fields by which they are judged.
	Scope *Scope `json:"scope,omitempty"`
}

// Plan writes the cases that are played here, the number-th of several parts.
func (b *Book[F]) Plan(number, of int, ids []string) error {
	b.Planned = len(ids)
	b.part.Number, b.part.Parts, b.part.IDs = number, of, ids
	return b.keepPart()
}

// Judge writes the scope of the judgement of the cases.
func (b *Book[F]) Judge(by *Scope) error {
	b.Scope, b.part.Scope = by, by
	return b.keepPart()
}

func (b *Book[F]) keepPart() error {
	text, err := json.Marshal(b.part)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, plannedFile), text, 0o600)
}

// readPart reads the part of a directory: an empty part, if the run was interrupted before the
// cases were known.
func readPart(dir string) (p part, err error) {
	file := filepath.Join(dir, plannedFile)
	text, err := os.ReadFile(filepath.Clean(file))
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s is damaged: play again in another directory", file)
	}
	return p, nil
}

// InPart reports whether a case is in the number-th of several parts. This depends on its name
// only, so that all machines agree, though the runs without a fault may differ a little.
func InPart(name string, number, of int) bool {
	if of <= 1 {
		return true
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return int(sum.Sum32()%uint32(of)) == number-1
}

// parts are the parts of several directories.
type parts []part

// left returns the number of cases of the parts that were not played.
func (all parts) left(played map[string]bool) int {
	left := map[string]bool{}
	for _, p := range all {
		for _, id := range p.IDs {
			if !played[id] {
				left[id] = true
			}
		}
	}
	return len(left)
}

// missing returns the parts of which there is no directory, as --shard has them. A directory with
// all cases misses nothing.
func (all parts) missing() []string {
	var missing []string
	there, most := map[int]bool{}, 0
	for _, p := range all {
		if p.Parts <= 1 {
			return nil
		}
		there[p.Number], most = true, max(most, p.Parts)
	}
	for number := 1; number <= most; number++ {
		if !there[number] {
			missing = append(missing, fmt.Sprintf("%d/%d", number, most))
		}
	}
	return missing
}

// weight ranks the outcomes of a case that was played in several directories: a finding weighs
// most, and an outcome that could not be judged nothing.
func (p *Played) weight() int {
	switch {
	case p.Found && !p.Unsure:
		return 4
	case p.Found:
		return 3
	case p.Error != "":
		return 0
	case p.Outcome == NotReached:
		return 1
	}
	return 2
}
