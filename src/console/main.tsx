/** The console: finds the page for an address, and shows the login page when the server wants one. */
import { render } from "preact";
import { address, followLinks } from "./address.ts";
import { JobPage } from "./pages/job.tsx";
import { Title } from "./parts.tsx";
import { LoginPage } from "./pages/login.tsx";
import { pages } from "./pages/table.tsx";
import { findSession, loginWanted, session, signOut } from "./server.ts";

function Page() {
  if (loginWanted.value) return <LoginPage />;
  if (!session.value) return <p class="quiet">Asking the node who you are.</p>;
  const [path = "/"] = address.value.split("?");
  const job = /^\/console\/jobs\/([^/]+)$/.exec(path)?.[1];
  if (job !== undefined) return <JobPage key={job} job={decodeURIComponent(job)} />;
  const wanted = path === "/" || path === "/console" || path === "/console/" ? pages[0] : undefined;
  const found = wanted ?? pages.find((page) => path === page.path || path.startsWith(`${page.path}/`));
  return found ? <found.View key={path} rest={path.slice(found.path.length + 1)} /> : <NoPage />;
}

const NoPage = () => <Title text="There is no page at this address" />;

function Who() {
  if (!session.value || loginWanted.value) return null;
  const { name, roles, proof } = session.value;
  return (
    <span class="state">
      {`${name}, ${roles.join(", ")} `}
      {proof === "session" && (
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </span>
  );
}

const Shell = () => (
  <>
    <header>
      <strong>Millrace</strong>
      <nav aria-label="pages">
        {pages.map(({ path, title }) => (
          <a key={path} href={path} aria-current={address.value.startsWith(path) ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Who />
    </header>
    <main>
      <Page />
    </main>
  </>
);

followLinks();
void findSession();
const root = document.querySelector("#app");
if (root) render(<Shell />, root);
