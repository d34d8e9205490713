/** Asks for a token and turns it into a session, which the browser keeps as a cookie that pages cannot read. */
import { useState } from "preact/hooks";
import { Title, Trouble } from "#console/parts.tsx";
import { signIn } from "#console/server.ts";

export function LoginPage() {
  const [token, setToken] = useState("");
  const [failed, setFailed] = useState<string>();
  const submit = (event: Event): void => {
    event.preventDefault();
    signIn(token).then(
      () => setToken(""),
      (error: Error) => setFailed(error.message),
    );
  };
  return (
    <form class="login" onSubmit={submit}>
      <Title text="Log in" />
      <p>
        On the node's own machine, <code>npx millrace login</code> prints a link that logs you in.
      </p>
      <label for="token">Or give a token</label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        value={token}
        onInput={({ currentTarget }) => setToken(currentTarget.value)}
      />
      <button type="submit">Log in</button>
      <Trouble problem={failed} />
    </form>
  );
}
