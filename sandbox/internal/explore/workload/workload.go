// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
)

// Workload describes the steps that users perform while an operator runs, and the sandbox in which
// they take place.
type Workload struct {
	// Include lists files of the same format without steps. They contain settings that several
	// workloads share.
	Include []string `json:"include,omitempty"`
	// Install lists manifest files and directories, which are applied in this order before the
	// operator starts. A directory with a kustomization is built. $NAME in a path is replaced by
	// the environment variable NAME.
	Install []string `json:"install,omitempty"`
	// Programs lists commands that sh -c runs in parallel with the operator, with administrator
	// rights. They start before the operator and end with the run. A command that exits is
	// restarted, and its exit fails a baseline run.
	Programs []string `json:"programs,omitempty"`
	// Applications answer the operator's connections to pods and Services.
	Applications []Application `json:"applications,omitempty"`
	// ServiceAccount is the operator's account as NAMESPACE/NAME, or "none" for an operator with
	// all rights. Defaults to the account of the installed Deployments and StatefulSets, if they
	// all use the same account.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// HostNetwork runs the operator in this machine's network instead of a separate network
	// namespace.
	HostNetwork bool `json:"hostNetwork,omitempty"`
	// Nodes is the number of simulated nodes. Defaults to 3.
	Nodes *int `json:"nodes,omitempty"`
	// WithoutControllers lists controllers to disable in the sandbox's controller manager, because
	// the operator replaces them. The names are the same as in the controller manager's
	// --controllers flag.
	WithoutControllers []string `json:"withoutControllers,omitempty"`
	Steps              []Step   `json:"steps"`
	// Invariants lists conditions that every version of an object must satisfy.
	Invariants []Invariant `json:"invariants,omitempty"`
	// Unjudged lists fields that are never compared, because they may differ by chance. Fields that
	// differ between baseline runs need not be listed.
	Unjudged []Unjudged `json:"unjudged,omitempty"`
}

// Unjudged selects a field of all objects of a resource, including its subfields.
type Unjudged struct {
	Resource string `json:"resource"`
	// Path is the field's path, like status.history[].message. [] stands for all items of a list.
	Path string `json:"path"`
}

// Step is an action of users. Exactly one field is set in addition to Name, except that Wait may
// follow any other action.
type Step struct {
	// Name is the step's name in reports. Defaults to a description of the action.
	Name string `json:"name,omitempty"`
	// Apply is a manifest, or the path of a manifest file.
	Apply string `json:"apply,omitempty"`
	// Patch changes an object with a JSON merge patch.
	Patch *Patch `json:"patch,omitempty"`
	// Delete deletes an object. The step does not wait until the object has been removed.
	Delete *Target `json:"delete,omitempty"`
	// Wait waits until an object satisfies a condition.
	Wait *Wait `json:"wait,omitempty"`
	// Run is a command for sh -c. It has administrator rights: KUBECONFIG is set, and kubectl is in
	// the PATH.
	Run string `json:"run,omitempty"`
}

// Target identifies an object by resource, namespace and name.
type Target struct {
	// Resource is the name of the resource with its group, like deployments.apps.
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

// Patch changes an object, or its status, with a JSON merge patch.
type Patch struct {
	Target      `json:",inline"`
	Subresource string `json:"subresource,omitempty"`
	Merge       any    `json:"merge"`
}

// Wait describes an object's condition that users wait for.
type Wait struct {
	Target `json:",inline"`
	// For is "deleted", or a CEL expression over the variable "object" that must become true.
	For string `json:"for"`
	// Timeout is the maximum wait in a baseline run. Defaults to 60s.
	Timeout metav1.Duration `json:"timeout,omitempty"`

	Condition *condition.Condition `json:"-"`
}

// Deleted is the value of Wait.For for a wait until the object no longer exists.
const Deleted = "deleted"

// Invariant is a CEL expression that must be true for every object version of a resource. The
// variable "object" is the version, "old" is the previous version or null, and "objects" maps each
// resource to a list of all its objects at that time, such as objects["deployments.apps"].
type Invariant struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Rule     string `json:"rule"`
	// Deleted restricts the check to the final version of each deleted object.
	Deleted bool `json:"deleted,omitempty"`

	Condition *condition.Condition `json:"-"`
}

// ObjectsVariable is the name of the CEL variable that holds all objects.
const ObjectsVariable = "objects"

// Administrator is the ServiceAccount value for an operator with all rights.
const Administrator = "none"

// defaultNodes is the default number of simulated nodes.
const defaultNodes = 3

// defaultWait is the default of Wait.Timeout.
const defaultWait = time.Minute

// Parse decodes and validates a workload in YAML, but ignores Include. The returned error has a
// line for each mistake.
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

// Compile compiles the workload's CEL conditions, and validates everything that can be validated
// without a cluster.
func (w *Workload) Compile() error {
	var none error
	if len(w.Steps) == 0 {
		none = errors.New("steps: there are none: a workload needs at least one, such as {apply: FILE}")
	}
	if w.Nodes == nil {
		w.Nodes = new(defaultNodes)
	}
	return errors.Join(none, w.Check())
}

// Check validates a workload, with or without steps, and compiles its conditions. The returned
// error has a line for each mistake.
func (w *Workload) Check() error {
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
	for i := range w.Applications {
		a := &w.Applications[i]
		if err := a.compile(); err != nil {
			problem("applications[%d]: %w", i, err)
		} else if slices.ContainsFunc(w.Applications[:i], a.hidden) {
			problem("applications[%d]: an earlier application answers for the same pods and port", i)
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

// compile validates a step and sets its default name.
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

// compile validates a wait, sets its default timeout, and compiles its condition.
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

// inline replaces the names of manifest files in steps with the files' content, so that the
// workload depends only on the files in Install. It resolves the paths in Install relative to
// `dir`.
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
		if !strings.Contains(s.Apply, ":") { // A string with a colon is a manifest; file names are assumed to contain none.
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

// objectNames returns the kind and name of each object in a manifest, like "Deployment web".
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

// MayRemoveAnnotations reports whether a step may remove another client's annotation: by a command,
// or by a patch of annotations.
func (s *Step) MayRemoveAnnotations() bool {
	if s.Patch == nil {
		return s.Run != ""
	}
	merge, _ := s.Patch.Merge.(map[string]any)
	metadata, _ := merge["metadata"].(map[string]any)
	_, is := metadata["annotations"]
	return is
}
