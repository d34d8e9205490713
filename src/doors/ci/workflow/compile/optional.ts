/** A property that is left out when there is no value for it. */
export function optional<K extends string, V>(name: K, value: V | undefined): { readonly [key in K]?: V } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [key in K]?: V };
}
