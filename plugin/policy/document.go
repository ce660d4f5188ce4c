package policy

// The shape of a policy file. A pointer or a nil slice is a field that the file
// does not have.
type document struct {
	APIVersion               string             `yaml:"apiVersion"`
	Kind                     string             `yaml:"kind"`
	Environment              string             `yaml:"environment"`
	Environments             []environmentDoc   `yaml:"environments"`
	AcceptsEnvironments      []string           `yaml:"acceptsEnvironments"`
	Namespace                string             `yaml:"namespace"`
	Administrators           *administratorsDoc `yaml:"administrators"`
	Help                     string             `yaml:"help"`
	Mode                     modeDoc            `yaml:"mode"`
	Issuers                  []issuerDoc        `yaml:"issuers"`
	Requirements             []requirementDoc   `yaml:"requirements"`
	Categories               []categoryDoc      `yaml:"categories"`
	Scope                    scopeDoc           `yaml:"scope"`
	Protected                protectedDoc       `yaml:"protected"`
	Kinds                    []kindDoc          `yaml:"kinds"`
	Variables                []variablesDoc     `yaml:"variables"`
	TrustedWriters           []writerDoc        `yaml:"trustedWriters"`
	Images                   imagesDoc          `yaml:"images"`
	UnknownImages            *UnknownImages     `yaml:"unknownImages"`
	GatedDeletes             []string           `yaml:"gatedDeletes"`
	SharedControllerIdentity string             `yaml:"sharedControllerIdentity"`
	Receipts                 receiptsDoc        `yaml:"receipts"`
	Revocations              *revocationsDoc    `yaml:"revocations"`
	Apps                     []appDoc           `yaml:"apps"`
}

type environmentDoc struct {
	Name    string    `yaml:"name"`
	Accepts []string  `yaml:"acceptsEnvironments"`
	Match   *matchDoc `yaml:"match"`
}

type modeDoc struct {
	Render    *mode `yaml:"render"`
	Admission *mode `yaml:"admission"`
}

type issuerDoc struct {
	Name         string     `yaml:"name"`
	Keys         fileDoc    `yaml:"keys"`
	Retired      []string   `yaml:"retired"`
	Algorithms   []string   `yaml:"algorithms"`
	Categories   []category `yaml:"categories"`
	Subjects     []glob     `yaml:"subjects"`
	Environments []string   `yaml:"environments"`
	MaxLifetime  *seconds   `yaml:"maxLifetime"`
	BreakGlass   bool       `yaml:"breakGlass"`
}

type fileDoc struct {
	File string `yaml:"file"`
}

type requirementDoc struct {
	Categories []category `yaml:"categories"`
	Issuers    []string   `yaml:"issuers"`
	Threshold  *int64     `yaml:"threshold"`
}

type categoryDoc struct {
	Name     category `yaml:"name"`
	Since    *day     `yaml:"since"`
	Required *bool    `yaml:"required"`
}

type scopeDoc struct {
	Admission struct {
		Namespaces struct {
			Include []string `yaml:"include"`
			Exclude []string `yaml:"exclude"`
		} `yaml:"namespaces"`
		ClusterScoped []string `yaml:"clusterScoped"`
		Kinds         []string `yaml:"kinds"`
	} `yaml:"admission"`
}

type protectedDoc struct {
	Namespaces []string `yaml:"namespaces"`
	Writers    []glob   `yaml:"writers"`
}

type kindDoc struct {
	Group    string     `yaml:"group"`
	Kind     string     `yaml:"kind"`
	Path     string     `yaml:"path"`
	Category category   `yaml:"category"`
	Pin      bool       `yaml:"pin"`
	Resource string     `yaml:"resource"`
	Scope    *kindScope `yaml:"scope"`
}

type variablesDoc struct {
	Names    []string `yaml:"names"`
	Category category `yaml:"category"`
}

type administratorsDoc struct {
	Users               []string `yaml:"users"`
	Groups              []string `yaml:"groups"`
	AcceptImpersonation bool     `yaml:"acceptImpersonation"`
}

type writerDoc struct {
	Preset              string     `yaml:"preset"`
	User                string     `yaml:"user"`
	Namespaces          []glob     `yaml:"namespaces"`
	Kinds               []string   `yaml:"kinds"`
	Names               []glob     `yaml:"names"`
	Categories          []category `yaml:"categories"`
	Images              []glob     `yaml:"images"`
	Until               *day       `yaml:"until"`
	AcceptImpersonation bool       `yaml:"acceptImpersonation"`
	Exempt              bool       `yaml:"exempt"`
}

type imagesDoc struct {
	Pins          *PinSource        `yaml:"pins"`
	Mirrors       map[string]string `yaml:"mirrors"`
	AllowUnpinned []glob            `yaml:"allowUnpinned"`
}

type receiptsDoc struct {
	Annotation   string       `yaml:"annotation"`
	MinRemaining *seconds     `yaml:"minRemaining"`
	KeepPrevious *int64       `yaml:"keepPrevious"`
	Expired      *expiredMode `yaml:"expired"`
	Backstop     bool         `yaml:"backstop"`
	Grace        *seconds     `yaml:"grace"`
}

type revocationsDoc struct {
	File      string   `yaml:"file"`
	Issuers   []string `yaml:"issuers"`
	MinSerial int64    `yaml:"minSerial"`
	MaxAge    *seconds `yaml:"maxAge"`
}

// matchDoc selects applications; every member that is given must match. Project
// and Repository are not in Argo CD's cache key.
type matchDoc struct {
	Name       glob            `yaml:"name"`
	Namespace  glob            `yaml:"namespace"`
	Path       glob            `yaml:"path"`
	Env        map[string]glob `yaml:"env"`
	Project    glob            `yaml:"project"`
	Repository glob            `yaml:"repository"`
}

// appDoc is what may be said per application. Mode has no admission here: the
// webhook sees objects, not applications.
type appDoc struct {
	Match matchDoc `yaml:"match"`
	Mode  struct {
		Render *mode `yaml:"render"`
	} `yaml:"mode"`
	Help          string         `yaml:"help"`
	Categories    []categoryDoc  `yaml:"categories"`
	UnknownImages *UnknownImages `yaml:"unknownImages"`
	Images        struct {
		Pins          *PinSource `yaml:"pins"`
		AllowUnpinned []glob     `yaml:"allowUnpinned"`
	} `yaml:"images"`
	Receipts struct {
		MinRemaining *seconds     `yaml:"minRemaining"`
		Expired      *expiredMode `yaml:"expired"`
	} `yaml:"receipts"`
}
