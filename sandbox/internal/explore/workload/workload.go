// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
)

// Workload is a list of steps that users perform while an operator runs.
type Workload struct {
	// Include are files of the same format, without steps, with the settings that several workloads
	// share.
	Include []string `json:"include,omitempty"`
	// Install are files and directories of manifests, which are applied in this order before the
	// operator starts. A directory with a kustomization is built. $NAME in a path is replaced by
	// the environment variable.
	Install []string `json:"install,omitempty"`
	// Programs are commands that run by sh -c beside the operator, with the rights of an
	// administrator, from before the operator starts until the end of the run. A command that exits
	// is restarted.
	Programs []string `json:"programs,omitempty"`
	// ServiceAccount is the NAMESPACE/NAME of the account whose rights the operator has, or "none"
	// for all rights. The default is the account that the installed Deployments and StatefulSets
	// use, if they use a single account.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// HostNetwork runs the operator in the network of this machine, and not in a network namespace.
	HostNetwork bool `json:"hostNetwork,omitempty"`
	// Nodes is the number of simulated nodes. Default 3.
	Nodes *int `json:"nodes,omitempty"`
	// WithoutControllers are controllers of the sandbox's controller manager that do not run,
	// because the operator takes their place. Names are as in --controllers.
	WithoutControllers []string `json:"withoutControllers,omitempty"`
	Steps              []Step   `json:"steps"`
	// Invariants must hold for each version of an object.
	Invariants []Invariant `json:"invariants,omitempty"`
	// Unjudged are fields that are not compared in any run, as they may differ by chance. Fields
	// that differ between baseline runs are found without being listed here.
	Unjudged []Unjudged `json:"unjudged,omitempty"`
}

// Unjudged is a field, with all fields below, of all objects of a resource.
type Unjudged struct {
	Resource string `json:"resource"`
	// Path has the form status.history[].message, where [] stands for all items of a list.
	Path string `json:"path"`
}

// Step is an action of users. Exactly one field is set, beside Name; Wait may also be set
// together with another field, and then follows that action.
type Step struct {
	// Name is the name of the step in reports. The default describes the action.
	Name string `json:"name,omitempty"`
	// Apply is a manifest, or the name of a manifest file.
	Apply string `json:"apply,omitempty"`
	// Patch changes an object by a JSON merge patch.
	Patch *Patch `json:"patch,omitempty"`
	// Delete deletes an object, without waiting until the object is gone.
	Delete *Target `json:"delete,omitempty"`
	// Wait waits until a condition holds.
	Wait *Wait `json:"wait,omitempty"`
	// Run runs a command by sh -c, with the rights of an administrator: KUBECONFIG is set, and
	// kubectl is in the PATH.
	Run string `json:"run,omitempty"`
}

// Target identifies an object, as kubectl does.
type Target struct {
	// Resource has the form deployments.apps.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func (t Target) String() string {
	if t.Namespace == "" {
		return t.Resource + " " + t.Name
	}
	return t.Resource + " " + t.Namespace + "/" + t.Name
}

// Patch is a JSON merge patch of an object, or of its status.
type Patch struct {
	Target      `json:",inline"`
	Subresource string `json:"subresource,omitempty"`
	Merge       any    `json:"merge"`
}

// Wait waits for a condition of an object.
type Wait struct {
	Target `json:",inline"`
	// For is a CEL expression over the variable object, which must become true; or "deleted".
	For string `json:"for"`
	// Timeout limits the wait in a baseline run. Default 60s.
	Timeout metav1.Duration `json:"timeout,omitempty"`

	Condition *condition.Condition
}

// Deleted is the value of Wait.For that waits until the object does not exist.
const Deleted = "deleted"

// Invariant is a CEL expression that must be true for each version of each object of a
// resource. Its variables are object, old (the previous version, or null) and objects (lists of
// all objects at that time by resource, such as objects["deployments.apps"]).
type Invariant struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Rule     string `json:"rule"`
	// Deleted checks the expression only for the last version of each deleted object.
	Deleted bool `json:"deleted,omitempty"`

	Condition *condition.Condition
}

// ObjectsVariable is the name of the CEL variable that has all objects.
const ObjectsVariable = "objects"

// Administrator is the value of ServiceAccount for an operator with all rights.
const Administrator = "none"

// defaultNodes is the default number of simulated nodes.
const defaultNodes = 3

// defaultWait is the default timeout of a wait.
const defaultWait = time.Minute

// Read reads and checks a workload file, with the files it includes. Names of other files are
// relative to the directory of the workload file.
func Read(file string) (*Workload, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("--workload: %w", err)
	}
	w := &Workload{}
	if err = w.parse(text); err == nil {
		err = w.expand()
	}
	if err == nil {
		err = w.include(filepath.Dir(file))
	}
	if err == nil {
		err = w.Compile()
	}
	if err == nil {
		err = w.inline(filepath.Dir(file))
	}
	if err != nil {
		return nil, fmt.Errorf("--workload %s: %w", file, err)
	}
	return w, nil
}

// Parse reads a workload from YAML, and ignores Include. The error has a line for each mistake.
func Parse(text []byte) (*Workload, error) {
	w := &Workload{}
	if err := w.parse(text); err != nil {
		return nil, err
	}
	return w, w.Compile()
}

func (w *Workload) parse(text []byte) error {
	if err := yaml.UnmarshalStrict(text, w); err != nil {
		text := err.Error()
		for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
			text = strings.TrimPrefix(text, prefix)
		}
		return errors.New(text)
	}
	return nil
}

// Compile checks everything that can be checked without a cluster, and compiles the conditions.
func (w *Workload) Compile() error {
	var none error
	if len(w.Steps) == 0 {
		none = errors.New("steps: there are none: a workload needs at least one, such as {apply: FILE}")
	}
	if w.Nodes == nil {
		w.Nodes = new(defaultNodes)
	}
	return errors.Join(none, w.check())
}

// check checks a workload that may have no steps, and compiles its conditions. The error has a
// line for each mistake.
func (w *Workload) check() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if namespace, name, _ := strings.Cut(w.ServiceAccount, "/"); w.ServiceAccount != "" && w.ServiceAccount != Administrator &&
		(namespace == "" || name == "" || strings.Contains(name, "/")) {
		problem("serviceAccount: %q: want NAMESPACE/NAME, or %s for the rights of an administrator", w.ServiceAccount, Administrator)
	}
	if w.Nodes != nil && *w.Nodes < 0 {
		problem("nodes: %d: there cannot be fewer than 0", *w.Nodes)
	}
	for i, name := range w.WithoutControllers {
		if !slices.Contains(component.Controllers, name) {
			problem("withoutControllers[%d]: there is no controller %q: want a name as in --controllers of the controller manager, such as replicaset-controller", i, name)
		}
	}
	for i := range w.Steps {
		if err := w.Steps[i].compile(); err != nil {
			problem("steps[%d]: %w", i, err)
		}
	}
	for i, u := range w.Unjudged {
		if u.Resource == "" || u.Path == "" {
			problem("unjudged[%d]: resource and path are required", i)
		}
	}
	for i := range w.Invariants {
		v := &w.Invariants[i]
		var err error
		switch {
		case v.Name == "" || v.Resource == "":
			problem("invariants[%d]: name and resource are required", i)
		default:
			if v.Condition, err = condition.Compile(v.Rule, ObjectsVariable); err != nil {
				problem("invariants[%d] (%s): %w", i, v.Name, err)
			}
		}
	}
	return errors.Join(problems...)
}

// compile checks a step, and sets its default name.
func (s *Step) compile() error {
	given, what := 0, ""
	note := func(is bool, name string) {
		if is {
			given++
			what = name
		}
	}
	note(s.Apply != "", "apply")
	note(s.Patch != nil, "patch")
	note(s.Delete != nil, "delete")
	note(s.Run != "", "run")
	if given == 0 {
		note(s.Wait != nil, "wait")
	}
	if given != 1 {
		return fmt.Errorf("has %d of apply, patch, delete, wait and run: want exactly one, and wait may come with another", given)
	}
	var target *Target
	switch what {
	case "patch":
		if target = &s.Patch.Target; s.Patch.Merge == nil {
			return errors.New("patch: merge is required: the fields to change, as in the object")
		}
	case "delete":
		target = s.Delete
	case "wait":
		target = &s.Wait.Target
	}
	if target != nil && !target.isNamed() {
		return fmt.Errorf("%s: resource and name are required", what)
	}
	if s.Name == "" {
		s.Name = s.describe(what, target)
	}
	if s.Wait == nil {
		return nil
	}
	return s.Wait.compile()
}

func (t *Target) isNamed() bool { return t.Resource != "" && t.Name != "" }

// compile checks a wait, sets its default timeout, and compiles its condition.
func (w *Wait) compile() (err error) {
	if !w.isNamed() {
		return errors.New("wait: resource and name are required")
	}
	if w.Timeout.Duration < 0 {
		return fmt.Errorf("wait: timeout: %s: it must be more than 0", w.Timeout.Duration)
	}
	if w.Timeout.Duration == 0 {
		w.Timeout.Duration = defaultWait
	}
	if w.For == Deleted {
		return nil
	}
	if w.Condition, err = condition.Compile(w.For); err != nil {
		return fmt.Errorf("wait: for: %w", err)
	}
	return nil
}

func (s *Step) describe(what string, target *Target) string {
	switch what {
	case "apply":
		return "apply " + s.Apply
	case "run":
		return s.Run
	case "wait":
		return fmt.Sprintf("wait for %s: %s", target, s.Wait.For)
	}
	return what + " " + target.String()
}

// inline reads the manifests of steps into the workload, so that it depends on no file other
// than the files to install. The paths of these are resolved relative to dir.
func (w *Workload) inline(dir string) error {
	if err := installable(w.Install, dir); err != nil {
		return err
	}
	for i, name := range w.Install {
		w.Install[i] = within(dir, name)
	}
	for i := range w.Steps {
		s := &w.Steps[i]
		if s.Apply == "" {
			continue
		}
		if !strings.Contains(s.Apply, ":") { // A manifest has a colon, as its fields do; a file name is assumed to have none.
			text, err := os.ReadFile(within(dir, s.Apply))
			if err != nil {
				return fmt.Errorf("steps[%d]: apply: %w", i, err)
			}
			s.Apply = string(text)
		}
		names, err := objectNames(s.Apply)
		if err != nil {
			return fmt.Errorf("steps[%d]: apply: %w", i, err)
		}
		if strings.HasPrefix(s.Name, "apply ") && strings.Contains(s.Name, "\n") {
			s.Name = "apply " + strings.Join(names, ", ")
		}
	}
	return nil
}

// objectNames returns the kind and name of each object of a manifest, such as "Deployment web".
func objectNames(manifest string) ([]string, error) {
	var names []string
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(manifest), 4096)
	for {
		var object metav1.PartialObjectMetadata
		if err := decoder.Decode(&object); err != nil {
			if len(names) > 0 && strings.Contains(err.Error(), "EOF") {
				return names, nil
			}
			return nil, fmt.Errorf("it is not a manifest: %w", err)
		}
		if object.Kind == "" {
			continue
		}
		names = append(names, object.Kind+" "+object.Name)
	}
}

// MayRemoveAnnotations reports whether a step may remove an annotation that another client has
// written.
func (s *Step) MayRemoveAnnotations() bool {
	if s.Patch == nil {
		return s.Run != ""
	}
	merge, _ := s.Patch.Merge.(map[string]any)
	metadata, _ := merge["metadata"].(map[string]any)
	_, is := metadata["annotations"]
	return is
}
